"""Driving engines: one file for each kind, behind one decoder that checks shapes before every call."""
