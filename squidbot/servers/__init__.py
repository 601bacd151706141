"""MCP servers that ship with squidbot, each a program of its own."""
