"""Builders of engines, one a file: a module makes its builder known by assigning it to BUILDER."""
