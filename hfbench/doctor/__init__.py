"""What is wrong with this machine and its Pythons: one check a trap, each with what it read and a remedy."""
