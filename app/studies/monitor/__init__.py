"""Views of studies and waves for experimenters. Each takes as many queries for ten people as for ten thousand."""
