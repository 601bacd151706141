"""Announces a change whenever it is asked for its tools."""

import time

from tests.faults.harness import ACT, ECHO, Message, Server, Wire, encoded, note, notification, serve


class ListChangedLoop(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        note("list")
        if self.argument == "flapping":
            self.tools = [ACT, ECHO, {**ACT, "name": f"t{time.monotonic_ns()}"}]
        wire.frame(encoded(notification("tools/list_changed")))
        super().list_tools(message, wire)


if __name__ == "__main__":
    serve(ListChangedLoop)
