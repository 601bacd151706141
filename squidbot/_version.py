"""The one place that holds the version; nothing else is imported to tell it."""

__version__ = "0.1.0"
