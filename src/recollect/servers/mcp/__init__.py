"""The MCP server: tools and resources over the client."""
