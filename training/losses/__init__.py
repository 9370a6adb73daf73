"""The losses, one module each, loaded by the name that a method gives."""
