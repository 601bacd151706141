"""Promises structured content and does not keep it."""

from tests.faults.harness import ACT, ECHO, Message, Server, Wire, reply, said, serve


class StructuredOutput(Server):
    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        self.tools = [{**ACT, "outputSchema": schema}, ECHO]

    def act(self, message: Message, wire: Wire) -> None:
        kept: dict[str, Message] = {
            "mismatch": {"structuredContent": {"n": "many"}},
            "missing": {},
            "list": {"structuredContent": [1]},
            "null": {"structuredContent": None},
        }
        reply(wire, message, {**said("done"), **kept[self.argument]})


if __name__ == "__main__":
    serve(StructuredOutput)
