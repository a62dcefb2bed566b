"""Trial loads: an engine loaded by its runtime in a process that may crash, and what its log means."""
