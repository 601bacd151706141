"""Says the same key twice, differently."""

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class DuplicateKeys(Server):
    def act(self, message: Message, wire: Wire) -> None:
        where = {
            "result": (b"{", b'{"result": {"content": []}, '),
            "id": (b"{", b'{"id": 1, '),
            "inner": (b'"text":', b'"text": "evil", "text":'),
        }
        old, new = where[self.argument]
        wire.frame(encoded(result(message, said("done"))).replace(old, new, 1))


if __name__ == "__main__":
    serve(DuplicateKeys)
