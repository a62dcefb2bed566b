"""Memory arithmetic: what a model takes, counted from its headers or its configuration."""
