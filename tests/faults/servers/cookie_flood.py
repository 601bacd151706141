"""Sets sixty kilobytes of new cookies with every answer."""

import itertools

from tests.faults.harness import Server, note, serve
from tests.faults.network import Exchange

_ANSWERS = itertools.count()


class CookieFlood(Server):
    def http(self, exchange: Exchange) -> bool:
        note(f"head {sum(map(len, exchange.headers.values()))}")
        head, count = exchange.head, next(_ANSWERS)

        def flooding(status: int = 200, /, **headers: object) -> None:
            cookies = "\r\nSet-Cookie: ".join(f"c{count}_{n}={'x' * 4000}; Path=/" for n in range(15))
            head(status, **{**headers, "Set_Cookie": cookies})

        exchange.head = flooding  # type: ignore[method-assign]
        return False


if __name__ == "__main__":
    serve(CookieFlood)
