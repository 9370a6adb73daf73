"""What finished matches say: the papers' figures with intervals, rounds side by side, cross-play, and charts."""
