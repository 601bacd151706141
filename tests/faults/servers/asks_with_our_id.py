"""Asks a question under the id of the call that it is to answer."""

from tests.faults.harness import Message, Server, Wire, encoded, serve


class AsksWithOurId(Server):
    def act(self, message: Message, wire: Wire) -> None:
        for method in ("ping", "roots/list", "sampling/createMessage", "no/such", "tools/call"):
            question = {"jsonrpc": "2.0", "id": message["id"], "method": method, "params": {}}
            wire.frame(encoded(question))
        super().act(message, wire)


if __name__ == "__main__":
    serve(AsksWithOurId)
