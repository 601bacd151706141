"""Answers calls that nobody has made yet, with ids that it guesses."""

from tests.faults.harness import Message, Server, Wire, encoded, said, serve


class AnswersBeforeAsked(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        near = range(message["id"] - 500, message["id"] + 500)
        for guess in [*range(1000), *near]:
            if guess != message["id"]:
                wire.frame(encoded({"jsonrpc": "2.0", "id": guess, "result": said("INJECTED")}))
        super().list_tools(message, wire)


if __name__ == "__main__":
    serve(AnswersBeforeAsked)
