"""The command line: parse, call the client, render. Nothing here decides how a memory is kept or found."""
