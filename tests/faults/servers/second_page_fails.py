"""Lists its first page and fails at the second."""

from tests.faults.harness import Message, Server, Wire, encoded, refusal, reply, serve


class SecondPageFails(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        if not message.get("params", {}).get("cursor"):
            reply(wire, message, {"tools": self.tools, "nextCursor": "2"})
        elif self.argument == "hang":
            wire.hold()
        elif self.argument == "garbage":
            wire.frame(b"{" + encoded(message["id"]))
        else:
            wire.frame(encoded(refusal(message, "no more")))


if __name__ == "__main__":
    serve(SecondPageFails)
