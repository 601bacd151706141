"""The one error by which a tool of a bundled server says no."""


class Refused(Exception):
    """Why something cannot be done and what to do instead, in words for whoever asked."""
