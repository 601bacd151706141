"""Says that our own request was cancelled."""

from tests.faults.harness import Message, Server, Wire, encoded, notification, serve


class CancelsOurCall(Server):
    def act(self, message: Message, wire: Wire) -> None:
        for named in (message["id"], str(message["id"]), None, [message["id"]], 5):
            wire.frame(encoded(notification("cancelled", requestId=named, reason="\u202eno")))
        if self.argument == "answers":
            super().act(message, wire)
        else:
            wire.hold()


if __name__ == "__main__":
    serve(CancelsOurCall)
