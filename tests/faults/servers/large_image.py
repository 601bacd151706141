"""Answers with a picture of 100 MB in base64."""

from tests.faults.harness import Message, Server, Wire, reply, serve


class LargeImage(Server):
    def act(self, message: Message, wire: Wire) -> None:
        block = {"type": "image", "mimeType": "image/png", "data": "A" * 100_000_000}
        reply(wire, message, {"content": [block]})


if __name__ == "__main__":
    serve(LargeImage)
