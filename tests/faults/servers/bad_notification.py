"""Sends notifications that are none, before it answers."""

from tests.faults.harness import Message, Server, Wire, encoded, reply, said, serve


class BadNotification(Server):
    def act(self, message: Message, wire: Wire) -> None:
        bare: Message = {"jsonrpc": "2.0"}
        for bad in (
            {**bare, "method": "notifications/message", "params": [1]},
            {**bare, "method": "notifications/message", "params": {"level": "loud", "data": 1}},
            {**bare, "method": "notifications/message"},
            {**bare, "method": "notifications/progress", "params": {"progressToken": {}, "progress": "x"}},
            {**bare, "method": "notifications/cancelled", "params": {"requestId": {}}},
            {**bare, "method": "notifications/resources/updated", "params": {"uri": 7}},
            {**bare, "method": ""},
            {**bare, "method": 7},
            {**bare, "method": None},
            {**bare, "params": {}},
            bare,
        ):
            wire.frame(encoded(bad))
        reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(BadNotification)
