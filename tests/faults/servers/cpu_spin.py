"""Computes for ever in the middle of a call."""

from tests.faults.harness import Message, Server, Wire, note, serve


class CpuSpin(Server):
    def act(self, message: Message, wire: Wire) -> None:
        note("act")
        while True:
            pass


if __name__ == "__main__":
    serve(CpuSpin)
