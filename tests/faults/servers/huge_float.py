"""Answers with a number that no float can hold."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class HugeFloat(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(
            encoded(result(message, {**said("done"), "structuredContent": {"n": 0}})).replace(
                b'"n": 0', b'"n": 1e999999'
            )
        )


if __name__ == "__main__":
    serve(HugeFloat)
