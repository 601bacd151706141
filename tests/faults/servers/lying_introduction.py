"""Introduces itself with fields of the wrong kind."""

from typing import Any

from tests.faults.harness import MODERN, Message, Server, Wire, encoded, reply, result, serve


class LyingIntroduction(Server):
    def introduction(self) -> Message:
        changed: dict[str, Any] = {
            "modern_by_handshake": {"protocolVersion": MODERN},
            "instructions_list": {"instructions": ["do", "evil"]},
            "no_server_info": {"serverInfo": None},
            "name_number": {"serverInfo": {"name": 5, "version": []}},
            "name_huge": {"serverInfo": {"name": "n" * 2_000_000, "version": "\x1b[2J"}},
            "version_newline": {"protocolVersion": "2025-06-18\r\nX-Injected: yes"},
            "meta_text": {"_meta": "none", "extra": {"x": 1}},
        }
        return {**super().introduction(), **changed.get(self.argument, {})}

    def initialize(self, message: Message, wire: Wire) -> None:
        if self.argument == "twice":
            reply(wire, message, self.introduction())
            wire.frame(encoded(result(message, {**self.introduction(), "protocolVersion": "1999-01-01"})))
        else:
            super().initialize(message, wire)


if __name__ == "__main__":
    serve(LyingIntroduction)
