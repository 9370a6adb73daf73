"""The names of the steps of a campaign's recipe. Pure.

Those of the base end with OF_BASE. Rounds with partners are PLAY_WITH followed by a number, further evaluations
EVALUATE followed by one.
"""

ITERATION = "iteration"  # the variable of their loop; the steps of the base have none
TEACH, KEEP_TAUGHT, TRAIN_FIRST = "teach", "keep_taught", "train_first"  # steps before the rounds
PLAY, PLAY_WITH, KEEP, TRAIN, EVALUATE = "play", "play_with", "keep", "train", "evaluate"
OF_BASE = "_base"
