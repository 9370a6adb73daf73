"""What may be published, and how: cards, pushes to a hub or a folder, and pulls."""
