"""Tensors moved from file to file in bounded memory: resumable, checked, counted."""
