"""Gives the session an id that is hard to send back."""

import itertools

from tests.faults.harness import Server, serve
from tests.faults.network import Exchange

_ANSWERS = itertools.count()


class OddSessionId(Server):
    def http(self, exchange: Exchange) -> bool:
        head = exchange.head
        named = {
            "huge": "s" * 60_000,
            "latin": "s\xe9ance",
            "blanks": "  a  b\tc  ",
            "empty": "",
            "two": "one\r\nMcp-Session-Id: two",
            "new_each_time": str(next(_ANSWERS)),
        }[self.argument]

        def named_head(status: int = 200, /, **headers: object) -> None:
            head(status, **{**headers, "Mcp_Session_Id": named})

        exchange.head = named_head  # type: ignore[method-assign]
        return False


if __name__ == "__main__":
    serve(OddSessionId)
