"""Hubs from the client's side: endpoints, what they hold, and models opened without their weights."""
