"""What bench/gpu.py runs: each part in a process of its own, each function giving its figures as plain data."""
