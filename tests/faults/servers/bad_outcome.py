"""Answers with neither one result nor one error."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, encoded, result, said, serve


class BadOutcome(Server):
    def act(self, message: Message, wire: Wire) -> None:
        bare: Message = {"jsonrpc": "2.0", "id": message["id"]}
        good = result(message, said("done"))
        answers: dict[str, Any] = {
            "both": {**good, "error": {"code": 1, "message": "no"}},
            "neither": bare,
            "result_text": {**bare, "result": "done"},
            "result_list": {**bare, "result": [1]},
            "result_null": {**bare, "result": None},
            "error_text": {**bare, "error": "no"},
            "error_null": {**bare, "error": None},
            "error_empty": {**bare, "error": {}},
            "error_code_text": {**bare, "error": {"code": "E1", "message": "no"}},
            "error_message_object": {**bare, "error": {"code": 1, "message": {"a": 1}}},
            "error_huge_code": {**bare, "error": {"code": 10**30, "message": "no"}},
        }
        wire.frame(encoded(answers[self.argument]))


if __name__ == "__main__":
    serve(BadOutcome)
