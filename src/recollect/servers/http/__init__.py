"""The HTTP API: parse, call the client, render."""
