"""Modules that layers are built of: each lists its tensors and what it caches."""
