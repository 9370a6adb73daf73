"""Import and export of files in published formats, which docs/formats.md describes."""
