"""Front doors: parse, call the client, render."""
