"""Engines for the tests of indexes."""

from __future__ import annotations

from tests.falkordb_server import falkordb_server, falkordb_url, mortal_falkordb

__all__ = ["falkordb_server", "falkordb_url", "mortal_falkordb"]  # fixtures of another module
