"""Uploads: what is looked at before a byte leaves, and what was sent."""
