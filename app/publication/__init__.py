"""What may leave the house, its card, and how it gets to a hub or a folder and back."""
