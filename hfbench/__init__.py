"""A terminal workbench for model ops on GPU boxes."""

__version__ = "0.1.0"
