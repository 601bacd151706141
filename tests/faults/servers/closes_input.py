"""Closes its input and lives on."""

import os

from tests.faults.harness import Message, Server, Wire, reply, said, serve, wait_for_ever


class ClosesInput(Server):
    def act(self, message: Message, wire: Wire) -> None:
        os.close(0)
        if self.argument == "answers":
            reply(wire, message, said("done"))
        wait_for_ever()


if __name__ == "__main__":
    serve(ClosesInput)
