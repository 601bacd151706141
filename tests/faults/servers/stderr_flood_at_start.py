"""Writes 64 MB to its standard error before it reads anything."""

import os

from tests.faults.harness import Server, serve


class StderrFloodAtStart(Server):
    def started(self) -> None:
        for _ in range(1024):
            os.write(2, b"e" * 65_536)


if __name__ == "__main__":
    serve(StderrFloodAtStart)
