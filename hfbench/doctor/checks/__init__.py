"""One file a topic, one function a trap."""
