"""Refuses its first second with 503 and a Retry-After."""

import time

from tests.faults.harness import Server, serve
from tests.faults.network import Exchange


class UnavailableForAMoment(Server):
    def http(self, exchange: Exchange) -> bool:
        if not hasattr(self, "began"):
            self.began = time.monotonic()
        if time.monotonic() - self.began > 0.8:
            return False
        exchange.answer(503, b"", Retry_After="1")
        return True


if __name__ == "__main__":
    serve(UnavailableForAMoment)
