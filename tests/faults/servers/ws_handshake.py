"""Answers the request for a WebSocket wrongly."""

from tests.faults.harness import Server, serve
from tests.faults.network import Exchange, WebSocketWire, accept_key, converse


class WsHandshake(Server):
    def http(self, exchange: Exchange) -> bool:
        headers: dict[str, object] = {
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec_WebSocket_Accept": accept_key(exchange),
            "Sec_WebSocket_Protocol": "mcp",
        }
        match self.argument:
            case "status_403" | "status_401" | "status_404" | "status_500" | "status_200":
                exchange.answer(int(self.argument.removeprefix("status_")), b"no")
                return True
            case "no_subprotocol":
                del headers["Sec_WebSocket_Protocol"]
            case "wrong_subprotocol":
                headers["Sec_WebSocket_Protocol"] = "soap"
            case "wrong_accept":
                headers["Sec_WebSocket_Accept"] = "AAAAAAAAAAAAAAAAAAAAAAAAAAA="
            case "no_upgrade":
                del headers["Upgrade"]
            case "huge_header":
                headers["X_Large"] = "x" * 1_000_000
            case "many_headers":
                headers |= {f"X_{number}": "x" for number in range(10_000)}
            case "unasked_extension":
                headers["Sec_WebSocket_Extensions"] = "x-telepathy"
            case "never":
                exchange.wait()
        exchange.head(101, **headers)
        converse(self, WebSocketWire(exchange))
        return True


if __name__ == "__main__":
    serve(WsHandshake)
