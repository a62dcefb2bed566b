"""One schema for SQLite and PostgreSQL, and the queries over it."""
