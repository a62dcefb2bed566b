"""Engines: built, proved, and known before loading whether they will run here."""
