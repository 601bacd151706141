"""One guarded door between a team of AI agents and every MCP server."""
