"""Whether an engine will load here: one rule a field of its manifest, judged before anything is started."""
