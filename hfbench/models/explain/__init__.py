"""Every key of a model's configuration files: what it means, and what the runtime fills in where a file is silent."""
