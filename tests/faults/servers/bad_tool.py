"""Lists one tool among good ones that nobody can use."""

from typing import Any

from tests.faults.harness import ACT, OBJECT, Message, Server, Wire, reply, serve


class BadTool(Server):
    def list_tools(self, message: Message, wire: Wire) -> None:
        bad: dict[str, Any] = {
            "null": None,
            "text": "tool",
            "no_name": {"inputSchema": OBJECT},
            "empty_name": {**ACT, "name": ""},
            "name_number": {**ACT, "name": 7},
            "no_schema": {"name": "bare"},
            "schema_null": {**ACT, "name": "bad", "inputSchema": None},
            "schema_text": {**ACT, "name": "bad", "inputSchema": "object"},
            "schema_array": {**ACT, "name": "bad", "inputSchema": {"type": "array"}},
            "schema_types": {**ACT, "name": "bad", "inputSchema": {"type": ["object", 7]}},
            "properties_list": {**ACT, "name": "bad", "inputSchema": {**OBJECT, "properties": []}},
            "property_text": {**ACT, "name": "bad", "inputSchema": {**OBJECT, "properties": {"a": "string"}}},
            "required_text": {**ACT, "name": "bad", "inputSchema": {**OBJECT, "required": "a"}},
            "recursive": {**ACT, "name": "bad", "inputSchema": {**OBJECT, "properties": {"a": {"$ref": "#"}}}},
            "output_text": {**ACT, "name": "bad", "outputSchema": "object"},
            "annotations_list": {**ACT, "name": "bad", "annotations": [1]},
            "description_number": {**ACT, "name": "bad", "description": 7},
            "duplicate": {**ACT, "description": "the second of this name"},
        }
        reply(wire, message, {"tools": [bad[self.argument], *self.tools, bad[self.argument]]})


if __name__ == "__main__":
    serve(BadTool)
