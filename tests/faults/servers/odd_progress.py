"""Reports progress of what nobody asked, in numbers that are none, before and after its answer."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, notification, reply, said, serve


class OddProgress(Server):
    def act(self, message: Message, wire: Wire) -> None:
        token = (message["params"].get("_meta") or {}).get("progressToken", message["id"])
        odd: list[Any] = [-1, 1e308, "half", None, [], True, 10**400, {"x": 1}]
        strangers: list[Any] = [0, "", None, {}, [token], -1, "x" * 100_000]
        for progress in odd:
            wire.frame(encoded(notification("progress", progressToken=token, progress=progress, total=progress)))
        wire.frame(b'{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":1,"progress":NaN}}')
        wire.frame(b'{"jsonrpc":"2.0","method":"notifications/progress","params":[1,2]}')
        for stranger in strangers:
            wire.frame(encoded(notification("progress", progressToken=stranger, progress=1)))
        reply(wire, message, said("done"))
        if wire.transport != "http":
            wire.frame(encoded(notification("progress", progressToken=token, progress=2, message="\x1b[31m")))


if __name__ == "__main__":
    serve(OddProgress)
