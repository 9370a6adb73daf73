"""Inference of local models. `runner`, `batch`, `generate_batch`, `key_value_cache`, `prefix_cache` and `sampling` load
torch, and only in the thread of an engine; the others do not.
"""
