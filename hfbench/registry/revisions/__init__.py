"""Commits: what was asked for, the trees it makes, and the transaction that moves a branch."""
