"""Building TensorRT-LLM plans with its own programs: flags as data, templates, rules, and what their log says."""
