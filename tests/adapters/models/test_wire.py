"""What goes to providers and what comes from them, to the letter: by requests as they arrive, and answers as they might."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from squidbot.adapters.models.anthropic_messages import AnthropicModel
from squidbot.adapters.models.definition import ModelDefinition
from squidbot.adapters.models.openai_chat import OpenAIModel
from squidbot.core.domain.content import AudioContent, ImageContent, TextContent
from squidbot.core.domain.conversation import (
    CallAsked,
    Message,
    ModelEvent,
    ModelMessage,
    ModelTool,
    Stopped,
    TextDelta,
    TokenUsage,
    ToolMessage,
    UserMessage,
)
from squidbot.core.domain.errors import ModelError

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-02")]

PICTURE, SOUND = ImageContent(b"\x89PNG", "image/png"), AudioContent(b"RIFF", "audio/wav")
CONVERSATION: list[Message] = [
    UserMessage("Look."),
    ModelMessage("I look.", (CallAsked("1", "look", '{"at": "cat"}'), CallAsked("2", "look", '{"at": '))),
    ToolMessage("1", "look", (TextContent("a cat"), PICTURE, SOUND)),
    ToolMessage("2", "look", (TextContent("not valid JSON"),), is_error=True),
    UserMessage("And now?"),
]


class Server:
    """A provider that answers every request with the same stream, and keeps what it was sent."""

    def __init__(self, events: list[Any], *, named: bool = False) -> None:
        self.received: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        lines = [f"event: {event['type']}\n" if named else "" for event in events]
        body = "".join(f"{line}data: {json.dumps(event)}\n\n" for line, event in zip(lines, events, strict=True))
        self.body = (body + ("" if named else "data: [DONE]\n\n")).encode()

    @contextmanager
    def running(self) -> Iterator[str]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.received.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                outer.headers.append({name.lower(): value for name, value in self.headers.items()})
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(outer.body)))
                self.end_headers()
                self.wfile.write(outer.body)

            def log_message(self, *_: Any) -> None: ...

        with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                yield f"http://127.0.0.1:{server.server_port}"
            finally:
                server.shutdown()
                thread.join()


def chunk(delta: dict[str, Any] | None = None, *, finish: str | None = None, **more: Any) -> dict[str, Any]:
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": choices, **more}


def piece(index: int, name: str | None = None, arguments: str = "", *, call: str | None = None) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"tool_calls": [{"index": index, "id": call, "type": "function", "function": function}]}


async def said(model: Any, messages: list[Message] = CONVERSATION, **more: Any) -> list[ModelEvent]:
    try:
        return [event async for event in model.stream(messages, system="Be brief.", **more)]
    finally:
        await model.aclose()


async def test_openai_is_sent_the_conversation_and_its_pieces_become_whole_calls() -> None:
    """Calls come in pieces, interleaved; pictures follow the answers, since an answer is text there."""
    server = Server(
        [
            chunk({"role": "assistant", "content": "I "}),
            chunk({"content": "see."}),
            chunk(piece(0, "look", '{"at": ', call="a")),
            chunk(piece(1, "look", "{}", call="b")),
            chunk(piece(0, None, '"dog"}')),
            chunk({}, finish="tool_calls"),
            chunk(usage={"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}),
        ]
    )
    with server.running() as url:
        model = OpenAIModel(
            ModelDefinition("m", f"{url}/v1", "sk-1", inputs=frozenset({"image"}), price=(1.0, 10.0), max_output=500)
        )
        events = await said(model, tools=[ModelTool("look", "Looks.", {"anyOf": [], "properties": {}})])
    assert events == [
        TextDelta("I "),
        TextDelta("see."),
        CallAsked("a", "look", '{"at": "dog"}'),
        CallAsked("b", "look", "{}"),
        TokenUsage(100, 10, 0.0002),
        Stopped("calls"),
    ]
    [sent] = server.received
    assert server.headers[0]["authorization"] == "Bearer sk-1"
    assert (sent["model"], sent["max_tokens"], sent["stream_options"]) == ("m", 500, {"include_usage": True})
    assert "anyOf" not in sent["tools"][0]["function"]["parameters"]
    roles = [message["role"] for message in sent["messages"]]
    assert roles == ["system", "user", "assistant", "tool", "tool", "user", "user"]
    assert sent["messages"][3]["content"] == "a cat\n[audio audio/wav, 4 bytes]"
    assert sent["messages"][5]["content"][1]["image_url"]["url"] == "data:image/png;base64,iVBORw=="
    # What the model wrote was no JSON; what goes back is, for servers that read it again.
    asked = sent["messages"][2]["tool_calls"]
    assert [json.loads(call["function"]["arguments"]) for call in asked] == [{"at": "cat"}, {"malformed": '{"at": '}]


async def test_calls_that_all_have_the_index_0_are_told_apart_by_their_ids() -> None:
    """Some servers count no further."""
    server = Server(
        [chunk(piece(0, "a", "{}", call="1")), chunk(piece(0, "b", "{}", call="2")), chunk({}, finish="stop")]
    )
    with server.running() as url:
        events = await said(OpenAIModel(ModelDefinition("m", f"{url}/v1")))
    assert [event.name for event in events if isinstance(event, CallAsked)] == ["a", "b"]
    assert "max_tokens" not in server.received[0]


def anthropic_events(*blocks: list[dict[str, Any]], stop: str | None = "tool_use") -> list[dict[str, Any]]:
    usage = {"input_tokens": 50, "output_tokens": 1, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 0}
    head = {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "usage": usage}
    events = [{"type": "message_start", "message": {**head, "stop_reason": None, "stop_sequence": None}}]
    events += [event for block in blocks for event in block]
    if stop:
        delta = {"stop_reason": stop, "stop_sequence": None}
        events.append({"type": "message_delta", "delta": delta, "usage": {"output_tokens": 9}})
        events.append({"type": "message_stop"})
    return events


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


async def test_anthropic_is_sent_the_conversation_and_its_pieces_become_whole_calls() -> None:
    """Pictures are part of an answer there, person and model take turns, and a broken call stays as it was written."""
    words = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "I see."})
    pieces = [{"type": "input_json_delta", "partial_json": part} for part in ('{"at": ', '"do')]
    call = block(1, {"type": "tool_use", "id": "t1", "name": "look", "input": {}}, *pieces)
    bare = block(2, {"type": "tool_use", "id": "t2", "name": "look", "input": {}})
    server = Server(anthropic_events(words, call, bare), named=True)
    with server.running() as url:
        model = AnthropicModel(ModelDefinition("m", url, "sk-2", inputs=frozenset({"image"})))
        events = await said(model, tools=[ModelTool("look", "Looks.", {"properties": {}})], max_tokens=300)
    assert events == [
        TextDelta("I see."),
        CallAsked("t1", "look", '{"at": "do'),
        CallAsked("t2", "look", "{}"),
        TokenUsage(90, 9),
        Stopped("calls"),
    ]
    [sent] = server.received
    assert server.headers[0]["authorization"] == "Bearer sk-2"
    assert (sent["max_tokens"], sent["system"][0]["text"]) == (300, "Be brief.")
    assert [message["role"] for message in sent["messages"]] == ["user", "assistant", "user"]
    first, second, asked = sent["messages"][2]["content"]
    assert [part["type"] for part in first["content"]] == ["text", "image", "text"]
    assert first["content"][1]["source"] == {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}
    assert (second["is_error"], asked["text"]) == (True, "And now?")
    assert sent["messages"][1]["content"][2]["input"] == {"malformed": '{"at": '}


@pytest.mark.parametrize("named", [False, True])
async def test_half_a_character_stops_no_conversation(named: bool) -> None:
    """Models write them, in words and in arguments, and a shell passes them on; whoever keeps them must be able to go on."""
    text = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Well."})
    events = anthropic_events(text) if named else [chunk({"content": "Well."}), chunk({}, finish="stop")]
    server = Server(events, named=named)
    messages: list[Message] = [
        UserMessage("What is \udcff?"),
        ModelMessage("\ud83d\ude00 or", (CallAsked("1", "look", '{"at": "\\ud83d"}'),)),
        ToolMessage("1", "look \ud83d", (TextContent("\ud83d"),)),
    ]
    with server.running() as url:
        model = AnthropicModel(ModelDefinition("m", url)) if named else OpenAIModel(ModelDefinition("m", f"{url}/v1"))
        assert TextDelta("Well.") in await said(model, messages)
    assert "What is \ufffd?" in str(server.received)
    assert "\U0001f600 or" in str(server.received)


@pytest.mark.parametrize("named", [False, True])
async def test_a_stream_that_ends_without_saying_so_is_no_answer(named: bool) -> None:
    """A proxy that gives up closes the stream politely; half an answer would look like a whole one."""
    text = block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "Half"})
    server = Server(anthropic_events(text, stop=None) if named else [chunk({"content": "Half"})], named=named)
    with server.running() as url:
        model = AnthropicModel(ModelDefinition("m", url)) if named else OpenAIModel(ModelDefinition("m", f"{url}/v1"))
        with pytest.raises(ModelError, match="broke off before its end") as caught:
            await said(model)
    assert caught.value.kind == "broken"


@pytest.mark.parametrize("named", [False, True])
async def test_a_page_in_the_place_of_a_model_is_said_to_be_none(named: bool) -> None:
    """A wrong address often answers, with a page of somebody's, and status 200."""
    server = Server([], named=named)
    server.body = b"<html>Welcome</html>"
    with server.running() as url:
        model = AnthropicModel(ModelDefinition("m", url)) if named else OpenAIModel(ModelDefinition("m", f"{url}/v1"))
        with pytest.raises(ModelError, match="answered with nothing") as caught:
            await said(model)
    assert url in str(caught.value)
    assert "model.base_url" in (caught.value.hint or "")


@pytest.mark.parametrize("named", [False, True])
async def test_an_error_in_the_middle_of_a_stream_may_pass(named: bool) -> None:
    """Providers say that they are overloaded when the headers are long sent."""
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server = Server([*anthropic_events(stop=None), error] if named else [{"error": error["error"]}], named=named)
    with server.running() as url:
        model = AnthropicModel(ModelDefinition("m", url)) if named else OpenAIModel(ModelDefinition("m", f"{url}/v1"))
        with pytest.raises(ModelError, match="Overloaded") as caught:
            await said(model)
    assert caught.value.is_passing


@pytest.mark.parametrize("kind", [OpenAIModel, AnthropicModel])
async def test_without_a_key_nothing_is_sent(kind: Any) -> None:
    """A request without a key would only be refused elsewhere, in other words."""
    with pytest.raises(ModelError, match="needs a key") as caught:
        await said(kind(ModelDefinition("m")))
    assert "_API_KEY" in (caught.value.hint or "")
