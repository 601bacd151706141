"""Does what it is told, and is gone before it can say so."""

from tests.faults.harness import ACT, ECHO, Message, Server, Wire, note, serve


class SideEffectThenCrash(Server):
    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        hints = {"readOnlyHint": True, "idempotentHint": True, "destructiveHint": False}
        self.tools = [{**ACT, "annotations": hints}, ECHO]

    def act(self, message: Message, wire: Wire) -> None:
        note("effect")
        wire.drop()


if __name__ == "__main__":
    serve(SideEffectThenCrash)
