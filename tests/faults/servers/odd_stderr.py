"""Ends with last words that no terminal should be given."""

import os
import sys

from tests.faults.harness import Server, serve

WORDS = {
    "ansi": b"\x1b[2J\x1b]0;owned\x07the database is gone\x1b[31m\n",
    "binary": bytes(range(256)) * 200 + b"\nthe database is gone\n",
    "unseen": "\u202ethe database\u200b is gone\U000e0041\u2066\n".encode(),
    "one_line": b"x" * 5_000_000 + b" the database is gone",
    "secret": b"the database is gone, token " + os.environ.get("API_TOKEN", "").encode() + b"\n",
    "carriage": b"the database is gone\rall is well      \n",
}


class OddStderr(Server):
    def started(self) -> None:
        sys.stderr.buffer.write(WORDS[self.argument])
        sys.stderr.flush()
        os._exit(3)


if __name__ == "__main__":
    serve(OddStderr)
