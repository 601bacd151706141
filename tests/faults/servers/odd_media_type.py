"""Says of its answer that it is something else, or in another script."""

from tests.faults.harness import Server, encoded, result, said, serve
from tests.faults.network import Exchange


class OddMediaType(Server):
    def http(self, exchange: Exchange) -> bool:
        message = exchange.message if exchange.method == "POST" else {}
        if message.get("params", {}).get("name") != "act":
            return False
        good = encoded(result(message, said("done")))
        kind, body = {
            "capitals": ("APPLICATION/JSON ; Charset=UTF-8", good),
            "utf16": ("application/json; charset=utf-16", good.decode().encode("utf-16")),
            "latin": ("application/json; charset=iso-8859-1", good.replace(b"done", b"done \xe9")),
            "rpc": ("application/json-rpc", good),
            "text": ("text/json", good),
            "two": ("application/json, text/html", good),
            "parameters": ("application/json;" + "x=y;" * 5_000, good),
            "events_as_json": ("application/json", b"data: " + good + b"\n\n"),
            "json_as_events": ("text/event-stream", good),
        }[self.argument]
        exchange.answer(200, body, Content_Type=kind)
        return True


if __name__ == "__main__":
    serve(OddMediaType)
