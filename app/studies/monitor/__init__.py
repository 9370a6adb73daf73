"""What experimenters see of studies and waves. Each takes as many queries for ten people as for ten thousand."""
