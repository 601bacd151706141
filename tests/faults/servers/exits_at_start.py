"""Ends at once with a code and some last words, one of them a secret."""

import os

from tests.faults.harness import Server, serve


class ExitsAtStart(Server):
    def started(self) -> None:
        os.write(2, b"cannot open the database\nthe token is " + os.environ.get("API_TOKEN", "none").encode() + b"\n")
        os._exit(int(self.argument or "1"))


if __name__ == "__main__":
    serve(ExitsAtStart)
