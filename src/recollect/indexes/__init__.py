"""Indexes: rebuildable from a store."""
