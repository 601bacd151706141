"""The client side of the Model Context Protocol; the only client code that imports mcp."""
