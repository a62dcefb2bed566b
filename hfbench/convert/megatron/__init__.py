"""How Megatron lays a model out: ranks and stages, names, arguments, folders."""
