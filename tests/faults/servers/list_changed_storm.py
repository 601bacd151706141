"""Announces twenty thousand changes before it answers."""

from tests.faults.harness import Message, Server, Wire, encoded, notification, reply, said, serve


class ListChangedStorm(Server):
    def act(self, message: Message, wire: Wire) -> None:
        for _ in range(20_000):
            wire.frame(encoded(notification("tools/list_changed")))
        reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(ListChangedStorm)
