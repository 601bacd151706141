"""Gives the id back as a string."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class IdAsText(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(encoded({**result(message, said("done")), "id": str(message["id"])}))


if __name__ == "__main__":
    serve(IdAsText)
