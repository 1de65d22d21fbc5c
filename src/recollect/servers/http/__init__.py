"""The HTTP door: `/v1` as JSON, health and metrics. Parse, call the client, render."""
