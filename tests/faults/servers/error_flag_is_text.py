"""Says isError with a word instead of true."""

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class ErrorFlagIsText(Server):
    def act(self, message: Message, wire: Wire) -> None:
        reply(wire, message, {**said("done"), "isError": "false"})


if __name__ == "__main__":
    serve(ErrorFlagIsText)
