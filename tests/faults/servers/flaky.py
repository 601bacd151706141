"""Fails every third call and is gone at every fifth."""

from tests.faults.harness import Message, Server, Wire, reply, said, serve


class Flaky(Server):
    calls = 0

    def act(self, message: Message, wire: Wire) -> None:
        type(self).calls += 1
        if self.calls % 5 == 0:
            wire.drop()
        if self.calls % 3 == 0:
            reply(wire, message, {**said("not this time"), "isError": True})
        else:
            reply(wire, message, said("done"))


if __name__ == "__main__":
    serve(Flaky)
