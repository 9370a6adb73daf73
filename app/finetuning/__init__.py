"""Training jobs: a dataset becomes a language model, by `python -m training` in a process of its own."""
