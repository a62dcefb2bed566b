"""The formats of Xet: hashes, xorbs and shards. They know neither HTTP nor the database."""
