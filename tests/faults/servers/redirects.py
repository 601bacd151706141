"""Sends the client somewhere else."""

import os

from tests.faults.harness import Server, serve
from tests.faults.network import Exchange


class Redirects(Server):
    def http(self, exchange: Exchange) -> bool:
        moment, _, where = self.argument.partition("-")
        if moment == "call" and exchange.message.get("params", {}).get("name") != "act":
            return False
        trap = os.environ["FAULT_TRAP"]
        places = {
            "loop": exchange.path,
            "port": trap + "/stolen",
            "name": trap.replace("127.0.0.1", "localhost") + "/stolen",
            "file": "file:///etc/passwd",
            "metadata_service": "http://169.254.169.254/latest/meta-data/",
            "no_url": "http://[",
        }
        exchange.answer(307, b"", Location=places[where])
        return True


if __name__ == "__main__":
    serve(Redirects)
