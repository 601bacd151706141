"""Answers with blocks that are not what blocks are."""

from typing import Any

from tests.faults.harness import Message, Server, Wire, reply, serve


class OddContent(Server):
    def act(self, message: Message, wire: Wire) -> None:
        good = {"type": "text", "text": "done"}
        contents: dict[str, Any] = {
            "unknown_type": [good, {"type": "hologram", "data": 1}],
            "no_type": [good, {"text": "x"}],
            "type_is_list": [good, {"type": ["text"]}],
            "bad_base64": [good, {"type": "image", "data": "%%%", "mimeType": "image/png"}],
            "text_is_number": [good, {"type": "text", "text": 7}],
            "text_is_null": [good, {"type": "text", "text": None}],
            "block_is_null": [good, None],
            "block_is_list": [good, [good]],
            "resource_without_uri": [good, {"type": "resource", "resource": {}}],
            "link_without_uri": [good, {"type": "resource_link"}],
            "not_a_list": "done",
            "an_object": good,
            "null": None,
            "empty": [],
            "number": 7,
        }
        reply(wire, message, {"content": contents[self.argument]})


if __name__ == "__main__":
    serve(OddContent)
