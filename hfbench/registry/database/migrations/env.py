"""How alembic runs the steps: on the connection it is given, and never by itself."""

from __future__ import annotations

from alembic import context

from hfbench.registry.database.schema import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
