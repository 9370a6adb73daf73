"""Human experiments: designs, what follows from them, and how people take part."""
