"""Answers the opening and is gone."""

import os

from tests.faults.harness import Message, Server, Wire, serve


class DiesAfterInitialize(Server):
    def initialize(self, message: Message, wire: Wire) -> None:
        super().initialize(message, wire)
        if wire.transport in ("http", "json"):
            os._exit(3)
        wire.drop()


if __name__ == "__main__":
    serve(DiesAfterInitialize)
