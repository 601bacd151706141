"""Sends a hundred thousand notifications before it answers."""

from tests.faults.harness import Message, Server, Wire, encoded, notification, reply, said, serve


class NotificationFlood(Server):
    def act(self, message: Message, wire: Wire) -> None:
        token = message["params"].get("_meta", {}).get("progressToken", message["id"])
        flood = {
            "log": notification("message", level="error", data="flood"),
            "progress": notification("progress", progressToken=token, progress=1),
            "unknown": notification("weather", rain=True),
            "resource": notification("resources/updated", uri="file:///x"),
            "cancelled": notification("cancelled", requestId=message["id"]),
        }[self.argument]
        for _ in range(100_000):
            wire.frame(encoded(flood))
        reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(NotificationFlood)
