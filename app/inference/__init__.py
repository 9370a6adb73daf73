"""What a local model's answers are made with. `model`, `batch`, `rows`, `kept`, `plain` and `drawing` load torch, in
the thread of an engine and nowhere else; `asks` and `engine` do not.
"""
