"""The MCP side of the gateway: what a role may use, to any MCP client, over HTTP or stdio, in both eras."""
