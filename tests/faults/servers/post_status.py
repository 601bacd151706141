"""Takes messages only to refuse them with a status, beside a stream that lives."""

from tests.faults.harness import Server, note, serve
from tests.faults.network import Exchange


class PostStatus(Server):
    def http(self, exchange: Exchange) -> bool:
        if exchange.method != "POST" or exchange.message.get("params", {}).get("name") != "act":
            return False
        note("refused")
        exchange.answer(int(self.argument), b"no")
        return True


if __name__ == "__main__":
    serve(PostStatus)
