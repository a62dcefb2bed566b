"""One module a group of architectures; each has a table FAMILIES, by model_type."""
