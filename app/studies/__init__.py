"""Human experiments: designs, what follows from them, and what becomes of the people who take part."""
