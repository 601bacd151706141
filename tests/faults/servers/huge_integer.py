"""Answers with a number of five thousand digits."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class HugeInteger(Server):
    def act(self, message: Message, wire: Wire) -> None:
        wire.frame(
            encoded(result(message, {**said("done"), "_meta": {"n": 0}})).replace(b'"n": 0', b'"n": ' + b"9" * 5000)
        )


if __name__ == "__main__":
    serve(HugeInteger)
