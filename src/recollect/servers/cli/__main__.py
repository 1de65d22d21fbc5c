"""`python -m recollect.servers.cli`: the same as the `recollect` script."""

from recollect.servers.cli.main import run

run()
