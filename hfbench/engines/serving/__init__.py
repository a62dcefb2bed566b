"""Commands that serve a model with vLLM, SGLang or TensorRT-LLM: composed from tables of flags, and checked first."""
