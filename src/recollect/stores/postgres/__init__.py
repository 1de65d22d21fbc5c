"""The Postgres store: one database that a team shares, with pgvector and nothing else beside it."""
