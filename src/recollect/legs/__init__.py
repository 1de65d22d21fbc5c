"""Legs: ways to search. Each turns a question into a ranking, and knows nothing of the others."""
