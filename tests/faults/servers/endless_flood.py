"""Never stops talking, from the opening on, and answers all the same."""

import threading
import time
from contextlib import suppress

from tests.faults.harness import Message, Server, Wire, encoded, notification, refusal, result, said, serve
from tests.faults.network import HungUp

FLOODS = {
    "logs": encoded(notification("message", level="error", data="flood")),
    "changes": encoded(notification("tools/list_changed")),
    "resources": encoded(notification("resources/updated", uri="file:///x")),
    "noise": b"2026-01-01 INFO still here",
    "answers": encoded(result({"id": 7}, said("forged"))),
    "errors": encoded(refusal({"id": None}, "no")),
    "questions": encoded({"jsonrpc": "2.0", "id": "q", "method": "roots/list"}),
    "broken": b'{"level": "info", "message": "still here", }',
}


class EndlessFlood(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        super().list_tools(message, wire)
        threading.Thread(target=self.flood, args=(wire,), daemon=True).start()

    def flood(self, wire: Wire) -> None:
        with suppress(HungUp, OSError):
            while True:
                wire.frame(FLOODS[self.argument])
                time.sleep(0)  # the lock of a wire is not fair


if __name__ == "__main__":
    serve(EndlessFlood)
