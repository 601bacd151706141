"""Introduces itself with nine million characters."""

from tests.faults.harness import Message, Server, serve


class Instructions10Mb(Server):
    def introduction(self) -> Message:
        return {**super().introduction(), "instructions": "x" * 9_000_000}


if __name__ == "__main__":
    serve(Instructions10Mb)
