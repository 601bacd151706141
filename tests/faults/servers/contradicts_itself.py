"""Answers a call with a result and then with an error, or the other way round."""

from tests.faults.harness import Message, Server, Wire, encoded, refusal, result, said, serve


class ContradictsItself(Server):
    def act(self, message: Message, wire: Wire) -> None:
        answers = [encoded(result(message, said("done"))), encoded(refusal(message, "refused"))]
        for answer in answers if self.argument == "result_first" else answers[::-1]:
            wire.frame(answer)


if __name__ == "__main__":
    serve(ContradictsItself)
