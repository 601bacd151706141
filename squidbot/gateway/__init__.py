"""The gateway: one door for every MCP client, and a window for people, as an ASGI application."""
