"""Takes a message and never says that it did, beside a stream that lives."""

from tests.faults.harness import Message, Server, serve
from tests.faults.network import Exchange


class PostHangs(Server):
    def hangs(self, message: Message) -> bool:
        if self.argument == "initialized":
            return bool(message.get("method") == "notifications/initialized")
        return bool(message.get("params", {}).get("name") == "act")

    def http(self, exchange: Exchange) -> bool:
        if exchange.method != "POST" or not self.hangs(exchange.message):
            return False
        exchange.wait()
        return True


if __name__ == "__main__":
    serve(PostHangs)
