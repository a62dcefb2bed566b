"""The packages a hub needs, of the extra `registry`; light to import, for declarations of actions."""

NEEDS = ("starlette", "granian", "sqlalchemy", "aiosqlite", "alembic", "blake3", "lz4")
