"""Opens well and never answers when asked for its tools."""

from tests.faults.harness import Message, Server, Wire, serve


class HangsInList(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        wire.hold()


if __name__ == "__main__":
    serve(HangsInList)
