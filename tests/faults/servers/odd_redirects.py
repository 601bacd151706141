"""Redirects in ways that look harmless."""

import os

from tests.faults.harness import Server, note, serve
from tests.faults.network import Exchange


class OddRedirects(Server):
    def http(self, exchange: Exchange) -> bool:
        if "moved" in exchange.path or "messages" in exchange.path:
            if "@" in exchange.headers.get("host", "") or "authorization" not in exchange.headers:
                note("lost its credentials")
            return False
        here = "http://" + exchange.headers["host"]
        trap = os.environ["FAULT_TRAP"]
        status, location = {
            "relative": (307, "/moved"),
            "query": (308, "?moved=1"),
            "capitals": (307, here.replace("http", "HTTP") + "/moved"),
            "userinfo": (307, here.replace("//", "//user:password@") + "/moved"),
            "looks_like_userinfo": (307, here + "@" + trap.removeprefix("http://") + "/moved"),
            "backslash": (307, "\\\\" + trap.removeprefix("http://") + "/moved"),
            "dot": (307, here.replace("127.0.0.1", "127.0.0.1.") + "/moved"),
            "decimal": (307, trap.replace("127.0.0.1", "2130706433") + "/moved"),
            "mapped": (307, trap.replace("127.0.0.1", "[::ffff:127.0.0.1]") + "/moved"),
            "empty": (307, ""),
            "huge": (307, "/" + "m" * 50_000),
            "see_other": (303, "/moved"),
            "unicode": (307, "/m\xf6ved"),
            "websocket": (307, here.replace("http", "ws") + "/moved"),
            "ftp": (307, here.replace("http", "ftp") + "/moved"),
            "fragment": (307, "/moved#" + trap),
        }[self.argument]
        exchange.answer(status, b"", Location=location)
        return True


if __name__ == "__main__":
    serve(OddRedirects)
