"""Where a model comes from: who signed it and under which licence it may be used."""
