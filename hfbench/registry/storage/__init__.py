"""Bytes on disk: drafts that become durable, blobs, xorbs, and the cache of rebuilt files."""
