"""Decode steps captured once and replayed, and whether a replay computes what the step would."""
