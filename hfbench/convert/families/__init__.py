"""Which tensors of a family become which of Megatron: one table a family, read in both directions."""
