"""The embedded store: one SQLite file that holds the memories and finds them. `store.SqliteStore` is its door."""
