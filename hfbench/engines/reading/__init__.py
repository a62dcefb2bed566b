"""Engines without a manifest: what their files tell, and what nobody can know without loading them."""
