"""Live play over WebSockets: from the bytes of a connection to the moves that are committed, and back to the pages."""
