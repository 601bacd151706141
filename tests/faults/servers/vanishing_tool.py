"""Announces that its tools are gone in the middle of a call, and lists none afterwards."""

from tests.faults.harness import Message, Server, Wire, encoded, note, notification, serve


class VanishingTool(Server):
    def act(self, message: Message, wire: Wire) -> None:
        self.tools = []
        note("gone")
        wire.frame(encoded(notification("tools/list_changed")))
        super().act(message, wire)


if __name__ == "__main__":
    serve(VanishingTool)
