"""Samples of time, what they add up to, when to stop taking them, and whether to believe them."""
