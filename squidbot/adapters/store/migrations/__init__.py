"""How the tables came to be as they are, one file a step; Alembic runs those that a database has not seen."""
