"""Asks the client a thousand things before it answers."""

from tests.faults.harness import Message, Server, Wire, encoded, reply, said, serve


class RequestFlood(Server):
    def act(self, message: Message, wire: Wire) -> None:
        method = {"sampling": "sampling/createMessage", "ping": "ping", "roots": "roots/list", "unknown": "client/eat"}[
            self.argument
        ]
        ask = {"messages": [], "maxTokens": 1} if self.argument == "sampling" else {}
        for number in range(1000):
            wire.frame(encoded({"jsonrpc": "2.0", "id": f"q{number}", "method": method, "params": ask}))
        reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(RequestFlood)
