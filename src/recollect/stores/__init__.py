"""Stores: sources of truth that can also search."""
