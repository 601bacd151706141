"""The tool registry behind its port."""
