"""Qdrant as the vector leg: one collection per generation, filters inside the engine."""
