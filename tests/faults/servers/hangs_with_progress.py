"""Reports progress for ever and never answers."""

import time

from tests.faults.harness import Message, Server, Wire, encoded, notification, serve


class HangsWithProgress(Server):
    def act(self, message: Message, wire: Wire) -> None:
        token = message["params"].get("_meta", {}).get("progressToken", message["id"])
        for number in range(10_000):
            wire.frame(encoded(notification("progress", progressToken=token, progress=number)))
            time.sleep(0.02)


if __name__ == "__main__":
    serve(HangsWithProgress)
