"""Writes two messages into one another, as two threads without a lock do."""

from tests.faults.harness import Message, Server, Wire, encoded, notification, result, said, serve


class TornLines(Server):
    def act(self, message: Message, wire: Wire) -> None:
        good = encoded(result(message, said("done")))
        aside = encoded(notification("message", level="info", data="beside"))
        match self.argument:
            case "inside":
                wire.raw(good[:30] + aside + b"\n" + good[30:] + b"\n")
            case "after_id":
                wire.raw(good[:-20] + aside + b"\n" + good[-20:] + b"\n")
            case "zipped":
                wire.raw(bytes(byte for pair in zip(good, good, strict=True) for byte in pair) + b"\n")


if __name__ == "__main__":
    serve(TornLines)
