"""Where Alembic begins: on the connection, and in the transaction, of whoever called it."""

from alembic import context

context.configure(connection=context.config.attributes["connection"])
context.run_migrations()
