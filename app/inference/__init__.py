"""What a local model's answers are made with. `runner`, `batch`, `generate_batch`, `key_value_cache`,
`prefix_cache` and `sampling` load torch, in the thread of an engine and nowhere else; the others do not.
"""
