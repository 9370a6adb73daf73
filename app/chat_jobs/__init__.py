"""Jobs that have models answer chats from one event loop, as societies and assessments do: each call is made once."""
