"""What schemathesis has to know beside the OpenAPI document: how JSON Lines are sent."""

from __future__ import annotations

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def json_lines(ctx: schemathesis.SerializationContext, value: object) -> bytes:
    """As they are."""
    return str(value).encode("utf-8", "surrogatepass")
