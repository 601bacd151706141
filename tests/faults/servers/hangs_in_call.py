"""Never answers a call."""

from tests.faults.harness import Message, Server, Wire, note, serve


class HangsInCall(Server):
    def act(self, message: Message, wire: Wire) -> None:
        note("act")
        wire.hold()


if __name__ == "__main__":
    serve(HangsInCall)
