"""The audit trail, grants and alerts in SQL: one SQLite file by default, PostgreSQL for several gateways."""
