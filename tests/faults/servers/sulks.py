"""Does not answer its first calls, as many as it is told, and behaves from then on."""

from tests.faults.harness import Message, Server, Wire, note, serve


class Sulks(Server):
    calls = 0

    def act(self, message: Message, wire: Wire) -> None:
        note("act")
        self.calls += 1
        if self.calls > int(self.argument):
            super().act(message, wire)


if __name__ == "__main__":
    serve(Sulks)
