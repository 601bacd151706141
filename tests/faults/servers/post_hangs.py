"""Takes a message and never says that it did, beside a stream that lives."""

from tests.faults.harness import Server, serve
from tests.faults.network import Exchange


class PostHangs(Server):
    def http(self, exchange: Exchange) -> bool:
        if exchange.method != "POST" or exchange.message.get("params", {}).get("name") != "act":
            return False
        exchange.wait()
        return True


if __name__ == "__main__":
    serve(PostHangs)
