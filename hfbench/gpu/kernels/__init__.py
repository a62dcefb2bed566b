"""Triton kernels: what a kernel file declares, and what can be said of it with and without a GPU."""
