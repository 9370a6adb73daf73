"""The analysis of finished matches: the papers' figures with intervals, rounds side by side, cross-play, and charts."""
