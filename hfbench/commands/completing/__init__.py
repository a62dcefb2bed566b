"""What completes `hfbench` on a command line: one shell a file, and the values that only this machine knows."""
