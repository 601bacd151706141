"""Promises structured content by a schema that takes for ever to check."""

import os

from tests.faults.harness import ACT, ECHO, OBJECT, Message, Server, Wire, reply, said, serve


class HostileSchema(Server):
    def __init__(self, argument: str = "") -> None:
        super().__init__(argument)
        self.tools = [{**ACT, "outputSchema": self.schema()}, ECHO]

    def schema(self) -> Message:
        return {
            "regex": {**OBJECT, "properties": {"text": {"type": "string", "pattern": "^(a+)+$"}}},
            "key_regex": {**OBJECT, "patternProperties": {"^(a|a)*$": {"type": "integer"}}},
            "exponential": {
                **OBJECT,
                "properties": {"text": {"not": {"$ref": "#/$defs/n0"}}},
                "$defs": self.doubling(),
            },
            "recursive": {**OBJECT, "$ref": "#"},
            "mutual": {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
            "unique": {**OBJECT, "properties": {"many": {"type": "array", "uniqueItems": True}}},
            "remote": {**OBJECT, "$ref": os.environ.get("FAULT_TRAP", "http://127.0.0.1:9/") + "/schema"},
            "file": {**OBJECT, "$ref": "file:///etc/passwd"},
            "bad_regex": {**OBJECT, "properties": {"text": {"type": "string", "pattern": "(["}}},
            "no_schema": {**OBJECT, "properties": {"text": {"type": 7}}, "required": "text"},
        }[self.argument]

    def doubling(self) -> Message:
        defs: Message = {f"n{n}": {"anyOf": [{"$ref": f"#/$defs/n{n + 1}"}] * 2} for n in range(30)}
        return {**defs, "n30": {"type": "integer"}}

    def act(self, message: Message, wire: Wire) -> None:
        value = {"text": "a" * 40 + "!", "a" * 40 + "!": 1, "many": [{"n": n} for n in range(20_000)]}
        if self.argument != "unique":
            del value["many"]
        reply(wire, message, {**said("done"), "structuredContent": value})


if __name__ == "__main__":
    serve(HostileSchema)
