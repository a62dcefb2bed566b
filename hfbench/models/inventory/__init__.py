"""The files of a model as they lie on disk: sizes, links, cache layout, and hashes against what they should be."""
