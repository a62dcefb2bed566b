"""How a reference becomes a model in each runtime: every step with its evidence, nothing of the model executed."""
