"""Self-play rounds: many matches of one game, planned from a seed, shared out among workers, and never played twice."""
