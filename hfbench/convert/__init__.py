"""Checkpoints from one layout into another."""
