"""Prints what is no message where only messages belong."""

from tests.faults.harness import Message, Server, Wire, serve


class StdoutBanner(Server):
    def noise(self) -> list[bytes]:
        return {
            "text": [b"Starting up ...", b"", b"  v1.2.3  ", b"DEBUG: {not json}"],
            "many": [b"noise %d" % number for number in range(20_000)],
            "bytes": [bytes(range(128, 256)), b"\xff\xfe\x00\x01"],
            "ansi": [b"\x1b[31mready\x1b[0m\x07", "\u202egnp.exe\u200b".encode()],
            "long": [b"#" * 2_000_000],
        }[self.argument]

    def take(self, message: Message, wire: Wire) -> None:
        if "id" in message:
            for line in self.noise():
                wire.frame(line)
        super().take(message, wire)


if __name__ == "__main__":
    serve(StdoutBanner)
