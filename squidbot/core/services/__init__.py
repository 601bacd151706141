"""The use cases; each decides something."""
