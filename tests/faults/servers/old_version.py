"""Speaks the oldest revision, whatever was asked for."""

from tests.faults.harness import Server, serve


class OldVersion(Server):
    version = "2024-11-05"


if __name__ == "__main__":
    serve(OldVersion)
