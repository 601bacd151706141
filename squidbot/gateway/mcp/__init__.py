"""The MCP side of the gateway: what a role may use, to any MCP client, over HTTP or stdio, in both eras."""

from squidbot.gateway.mcp.deferred import defer

# Each of the SDK's modules would load all others: a client, its other server, and a library of cryptography.
defer("mcp", "mcp.client", "mcp.server")
