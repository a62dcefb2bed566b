"""Three walls that prove a conversion: weights, forward, task."""
