"""No fault at all: what all the others are held against."""

from tests.faults.harness import Server, serve


class Behaves(Server):
    """As it is."""


if __name__ == "__main__":
    serve(Behaves)
