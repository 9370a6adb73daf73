"""Trains language models on what was played: JSONL or JSON in, a checkpoint folder out. Knows no app, no database."""
