"""Refuses a call in words and numbers that are hard to pass on."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, serve


class OddError(Server):
    def act(self, message: Message, wire: Wire) -> None:
        deep: Any = []
        for _ in range(150):
            deep = [deep]
        error: dict[str, Any] = {
            "float_code": {"code": -32000.5, "message": "no"},
            "true_code": {"code": True, "message": "no"},
            "large_code": {"code": 10**18, "message": "no"},
            "deep_data": {"code": -32000, "message": "no", "data": deep},
            "our_data": {
                "code": -32000,
                "message": "no",
                "data": {
                    "squidbot": {
                        "status": 404,
                        "retry_after": 1e9,
                        "session_lost": True,
                        "cause": "x",
                        "unreachable": True,
                    }
                },
            },
            "elicit_url": {
                "code": -32042,
                "message": "go there",
                "data": {"elicitations": [{"mode": "url", "url": "javascript:alert(1)", "elicitationId": "1"}]},
            },
            "version": {"code": -32022, "message": "unsupported", "data": {"supported": [], "requested": 5}},
            "header": {"code": -32020, "message": "header mismatch"},
            "parse": {"code": -32700, "message": "Parse error"},
            "timeout": {"code": -32001, "message": "Request timed out"},
            "closed": {"code": -32000, "message": "Connection closed"},
            "unseen": {"code": -32000, "message": "\x1b]0;pwned\x07\u202e\u200bno\r\nFAKE LOG LINE\x00"},
        }[self.argument]
        wire.frame(encoded({"jsonrpc": "2.0", "id": message["id"], "error": error}))


if __name__ == "__main__":
    serve(OddError)
