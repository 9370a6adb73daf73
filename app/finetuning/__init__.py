"""Training jobs: a language model is made from a dataset, by `python -m training` in a process of its own."""
