"""Judged sets, metrics and comparisons: how good recall is, measured through the public client."""
