"""Wants arguments to be sent in headers that are none of its business."""

from tests.faults.harness import ACT, Message, Server, Wire, note, serve
from tests.faults.network import Exchange


class HostileHeaderParam(Server):
    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        name = {
            "newline": "X\r\nInjected: yes",
            "authorization": "Authorization",
            "host": "Host",
            "unicode": "Gr\u00f6\u00dfe\u202e",
            "empty": "",
            "number": 5,
            "value": "Text",
        }[argument]
        schema = {"type": "object", "properties": {"text": {"type": "string", "x-mcp-header": name}}}
        self.tools = [{**ACT, "inputSchema": schema}, *self.tools[1:]]

    def http(self, exchange: Exchange) -> bool:
        if "injected" in exchange.headers:
            note("injected")
        return False

    def act(self, message: Message, wire: Wire) -> None:
        super().act(message, wire)


if __name__ == "__main__":
    serve(HostileHeaderParam)
