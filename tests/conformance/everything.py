"""A server with all that the conformance judge wants to see, in both eras, to stand behind the gateway.

python -m tests.conformance.everything [--transport http --port-file FILE] [--legacy-only]
"""

import argparse
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias, cast

import anyio
import mcp_types as types
from mcp.server import Server, ServerRequestContext
from mcp.server.caching import CACHEABLE_METHODS, CacheHint
from mcp.server.lowlevel.server import NotificationOptions
from mcp.server.models import InitializationOptions
from mcp.server.session import ServerSession
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, PromptsListChanged, ToolsListChanged
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from tests.fixtures.serve import serve_network, serve_stdio

Context: TypeAlias = ServerRequestContext[Any, Any]
Wire: TypeAlias = dict[str, Any]
Run: TypeAlias = Callable[["Everything", Context, Mapping[str, Any]], Awaitable[Wire]]

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
SOUND = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA="
_KEY = b"a key of the fixture's own"
_RESULTS: dict[str, type[types.Result]] = {
    "elicitation/create": types.ElicitResult,
    "sampling/createMessage": types.CreateMessageResult,
}
_REQUESTS: dict[str, type[types.Request[Any, Any]]] = {
    "elicitation/create": types.ElicitRequest,
    "sampling/createMessage": types.CreateMessageRequest,
}
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}

TOOLS: dict[str, tuple[Wire, Run]] = {}


def tool(description: str, schema: Wire | None = None) -> Callable[[Run], Run]:
    """Offer the function as a tool of its own name."""

    def offer(run: Run) -> Run:
        definition = {"name": run.__name__, "description": description, "inputSchema": schema or {"type": "object"}}
        TOOLS[run.__name__] = (definition, run)
        return run

    return offer


def said(*content: Wire) -> Wire:
    return {"content": list(content)}


def text(words: str) -> Wire:
    return {"type": "text", "text": words}


def form(message: str, **properties: Any) -> Wire:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}}


def sampling(words: str, tokens: int = 100) -> Wire:
    messages = [{"role": "user", "content": text(words)}]
    return {"method": "sampling/createMessage", "params": {"messages": messages, "maxTokens": tokens}}


ROOTS: Wire = {"method": "roots/list", "params": {}}
NAME = form("What is your name?", name={"type": "string"})


def wants(requests: Mapping[str, Wire], state: str | None = None) -> Wire:
    """A result that asks first."""
    return {
        "resultType": "input_required",
        "inputRequests": dict(requests),
        **({"requestState": state} if state else {}),
    }


def sealed(content: str) -> str:
    return f"{content}.{hmac.digest(_KEY, content.encode(), hashlib.sha256).hex()}"


def unsealed(state: Any) -> str:
    content, _, mark = str(state).partition(".")
    if mark != hmac.digest(_KEY, content.encode(), hashlib.sha256).hex():
        raise MCPError(types.INVALID_PARAMS, "Invalid requestState")
    return content


def answers(params: Mapping[str, Any], *keys: str) -> dict[str, Wire] | None:
    """What the client came back with, if all of it is there."""
    given = params.get("inputResponses")
    if not isinstance(given, Mapping) or any(key not in given for key in keys):
        return None
    return {key: cast("Wire", given[key]) for key in keys}


@tool("Text")
async def test_simple_text(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    return said(text("This is a simple text response for testing."))


@tool("A picture")
async def test_image_content(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    return said({"type": "image", "data": PIXEL, "mimeType": "image/png"})


@tool("A sound")
async def test_audio_content(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    return said({"type": "audio", "data": SOUND, "mimeType": "audio/wav"})


@tool("A resource in the answer")
async def test_embedded_resource(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    resource = {
        "uri": "test://embedded-resource",
        "mimeType": "text/plain",
        "text": "This is an embedded resource content.",
    }
    return said({"type": "resource", "resource": resource})


@tool("Several kinds at once")
async def test_multiple_content_types(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    resource = {
        "uri": "test://mixed-content-resource",
        "mimeType": "application/json",
        "text": '{"test":"data","value":123}',
    }
    return said(
        text("Multiple content types test:"),
        {"type": "image", "data": PIXEL, "mimeType": "image/png"},
        {"type": "resource", "resource": resource},
    )


@tool("Logs")
async def test_tool_with_logging(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    for words in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await server.log(ctx, words)
        await anyio.sleep(0.05)
    return said(text("Logged three times."))


@tool("Logs, for those who ask for it")
async def test_logging_tool(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    await server.log(ctx, "a message")
    return said(text("Logged, if anybody wants to hear."))


@tool("Fails")
async def test_error_handling(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    return {**said(text("This tool intentionally returns an error for testing")), "isError": True}


@tool("Reports progress")
async def test_tool_with_progress(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    for done in (0, 50, 100):
        await ctx.session.report_progress(done, 100)
        await anyio.sleep(0.05)
    return said(text("Done."))


@tool("Asks the model", {"type": "object", "properties": {"prompt": {"type": "string"}}, "required": ["prompt"]})
async def test_sampling(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    words = params["arguments"]["prompt"]
    return await server.ask(ctx, params, sampling(words), lambda found: f"LLM response: {found['content']['text']}")


def completed(found: Wire) -> str:
    return f"Elicitation completed: action={found['action']}, content={json.dumps(found.get('content', {}))}"


@tool("Asks the person", {"type": "object", "properties": {"message": {"type": "string"}}, "required": ["message"]})
async def test_elicitation(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    wanted = form(
        params["arguments"]["message"],
        username={"type": "string", "description": "User's response"},
        email={"type": "string", "description": "User's email address"},
    )
    return await server.ask(
        ctx, params, wanted, lambda found: f"User response: {found['action']}, content: {found.get('content')}"
    )


@tool("Asks with defaults")
async def test_elicitation_sep1034_defaults(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    wanted = form(
        "Please review",
        name={"type": "string", "default": "John Doe"},
        age={"type": "integer", "default": 30},
        score={"type": "number", "default": 95.5},
        status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
        verified={"type": "boolean", "default": True},
    )
    return await server.ask(ctx, params, wanted, completed)


@tool("Asks with choices")
async def test_elicitation_sep1330_enums(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    plain = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"} for n, word in enumerate(("First", "Second", "Third"), 1)
    ]
    legacy = {"enum": ["opt1", "opt2", "opt3"], "enumNames": ["Option One", "Option Two", "Option Three"]}
    wanted = form(
        "Please choose",
        untitledSingle={"type": "string", "enum": plain},
        titledSingle={"type": "string", "oneOf": titled},
        legacyEnum={"type": "string", **legacy},
        untitledMulti={"type": "array", "items": {"type": "string", "enum": plain}},
        titledMulti={"type": "array", "items": {"anyOf": titled}},
    )
    return await server.ask(ctx, params, wanted, completed)


@tool("Needs a client with a model")
async def test_missing_capability(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    declared = ctx.session.client_capabilities
    if declared is None or declared.sampling is None:
        data: Wire = {"requiredCapabilities": {"sampling": {}}}
        raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling", data)
    return said(text("The client can sample."))


@tool("Asks in the middle of a stream")
async def test_streaming_elicitation(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    await ctx.session.report_progress(1, 2)
    return await server.ask(ctx, params, NAME, completed)


@tool("Adds a tool, or removes it")
async def test_trigger_tool_change(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    server.has_more_tools = not server.has_more_tools
    await server.bus.publish(ToolsListChanged())
    for session in server.clients:
        await session.send_tool_list_changed()
    return said(text("The tools have changed."))


@tool("Adds a prompt, or removes it")
async def test_trigger_prompt_change(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    server.has_more_prompts = not server.has_more_prompts
    await server.bus.publish(PromptsListChanged())
    for session in server.clients:
        await session.send_prompt_list_changed()
    return said(text("The prompts have changed."))


@tool("Asks for a name")
async def test_input_required_result_elicitation(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    found = answers(params, "user_name")
    return said(text(f"Hello, {found['user_name']['content']['name']}!")) if found else wants({"user_name": NAME})


@tool("Asks for a thought")
async def test_input_required_result_sampling(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    found = answers(params, "capital_question")
    if found:
        return said(text(found["capital_question"]["content"]["text"]))
    return wants({"capital_question": sampling("What is the capital of France?")})


@tool("Asks for roots")
async def test_input_required_result_list_roots(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    found = answers(params, "client_roots")
    return said(text(str(found["client_roots"]["roots"]))) if found else wants({"client_roots": ROOTS})


@tool("Asks, and wants its state back")
async def test_input_required_result_request_state(
    server: "Everything", ctx: Context, params: Mapping[str, Any]
) -> Wire:
    found = answers(params, "confirm")
    if found and unsealed(params.get("requestState")) == "confirming":
        return said(text("state-ok"))
    return wants({"confirm": form("Please confirm", ok={"type": "boolean"})}, sealed("confirming"))


@tool("Asks, and sees if its state was changed")
async def test_input_required_result_tampered_state(
    server: "Everything", ctx: Context, params: Mapping[str, Any]
) -> Wire:
    return await test_input_required_result_request_state(server, ctx, params)


@tool("Asks for several things")
async def test_input_required_result_multiple_inputs(
    server: "Everything", ctx: Context, params: Mapping[str, Any]
) -> Wire:
    found = answers(params, "user_name", "greeting", "client_roots")
    if found and unsealed(params.get("requestState")) == "several":
        return said(text("All is there."))
    requests = {"user_name": NAME, "greeting": sampling("Generate a greeting", 50), "client_roots": ROOTS}
    return wants(requests, sealed("several"))


@tool("Asks twice")
async def test_input_required_result_multi_round(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    state = unsealed(params["requestState"]) if "requestState" in params else ""
    if state == "second" and answers(params, "step2"):
        return said(text("Both steps are done."))
    if state == "first" and answers(params, "step1"):
        question = form("Step 2: What is your favorite color?", color={"type": "string"})
        return wants({"step2": question}, sealed("second"))
    return wants({"step1": form("Step 1: What is your name?", name={"type": "string"})}, sealed("first"))


@tool("Asks only for what the client can do")
async def test_input_required_result_capabilities(
    server: "Everything", ctx: Context, params: Mapping[str, Any]
) -> Wire:
    declared = ctx.session.client_capabilities
    offered = {"sampling": sampling("Say hello"), "elicitation": NAME, "roots": ROOTS}
    able = {name for name in offered if declared is not None and getattr(declared, name) is not None}
    if answers(params, *able):
        return said(text("Thank you."))
    return wants({name: request for name, request in offered.items() if name in able})


@tool("Has a schema of many words", SCHEMA_2020)
async def json_schema_2020_12_tool(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    return said(text("It fits."))


@tool(
    "Has an argument that is also a header",
    {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}},
)
async def test_custom_header(server: "Everything", ctx: Context, params: Mapping[str, Any]) -> Wire:
    return said(text(str((params.get("arguments") or {}).get("region"))))


PROMPTS: list[Wire] = [
    {"name": "test_simple_prompt", "description": "Simple"},
    {
        "name": "test_prompt_with_arguments",
        "description": "With arguments",
        "arguments": [
            {"name": "arg1", "description": "First test argument", "required": True},
            {"name": "arg2", "description": "Second test argument", "required": True},
        ],
    },
    {
        "name": "test_prompt_with_embedded_resource",
        "description": "With a resource",
        "arguments": [{"name": "resourceUri", "description": "URI of the resource to embed", "required": True}],
    },
    {"name": "test_prompt_with_image", "description": "With a picture"},
    {"name": "test_input_required_result_prompt", "description": "Asks first"},
]
RESOURCES: list[Wire] = [
    {"uri": "test://static-text", "name": "Static text", "description": "A text", "mimeType": "text/plain"},
    {"uri": "test://static-binary", "name": "Static binary", "description": "A picture", "mimeType": "image/png"},
    {"uri": "test://watched-resource", "name": "Watched", "description": "Changes", "mimeType": "text/plain"},
]


class Everything(Server[Any]):
    """The SDK's server with one of everything."""

    def __init__(self) -> None:
        self.bus = InMemorySubscriptionBus()
        self.clients: list[ServerSession] = []
        self.has_more_tools = False
        self.has_more_prompts = False
        hints = {method: CacheHint() for method in CACHEABLE_METHODS}
        listen = ListenHandler(self.bus)
        super().__init__("everything", version="1.0", cache_hints=hints, on_subscriptions_listen=listen)  # type: ignore[arg-type]
        handlers: list[tuple[str, Any, Any]] = [
            ("tools/list", types.PaginatedRequestParams, self._list_tools),
            ("tools/call", types.CallToolRequestParams, self._call_tool),
            ("prompts/list", types.PaginatedRequestParams, self._list_prompts),
            ("prompts/get", types.GetPromptRequestParams, self._get_prompt),
            ("resources/list", types.PaginatedRequestParams, self._list_resources),
            ("resources/templates/list", types.PaginatedRequestParams, self._list_templates),
            ("resources/read", types.ReadResourceRequestParams, self._read),
            ("resources/subscribe", types.SubscribeRequestParams, self._nothing),
            ("resources/unsubscribe", types.UnsubscribeRequestParams, self._nothing),
            ("completion/complete", types.CompleteRequestParams, self._complete),
            ("logging/setLevel", types.SetLevelRequestParams, self._nothing),
        ]
        for method, params, handler in handlers:
            self.add_request_handler(method, params, partial(_whole, handler))
        self.add_notification_handler("notifications/initialized", types.NotificationParams, self._initialized)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        everything = NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True)
        return super().create_initialization_options(everything, experimental_capabilities, extensions)

    async def log(self, ctx: Context, words: str) -> None:
        """Say something at the level info."""
        await ctx.session.send_log_message("info", words, related_request_id=ctx.request_id)

    async def ask(self, ctx: Context, params: Mapping[str, Any], request: Wire, told: Callable[[Wire], str]) -> Wire:
        """Ask the client one thing, in the way of its era."""
        if ctx.protocol_version in MODERN_PROTOCOL_VERSIONS:
            found = answers(params, "asked")
            return said(text(told(found["asked"]))) if found else wants({"asked": request})
        method = request["method"]
        answer = await ctx.session.send_request(
            cast("types.ServerRequest", _REQUESTS[method].model_validate(request)),
            _RESULTS[method],
            metadata=ServerMessageMetadata(related_request_id=ctx.request_id),
        )
        return said(text(told(answer.model_dump(mode="json", by_alias=True, exclude_none=True))))

    async def _list_tools(self, ctx: Context, params: Any) -> Wire:
        listed = [definition for definition, _ in TOOLS.values()]
        more = [{"name": "test_added_tool", "description": "Comes and goes", "inputSchema": {"type": "object"}}]
        return {"tools": [*listed, *(more if self.has_more_tools else [])]}

    async def _call_tool(self, ctx: Context, params: types.CallToolRequestParams) -> Wire:
        if params.name not in TOOLS:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {params.name}")
        return await TOOLS[params.name][1](self, ctx, ctx.params or {})

    async def _list_prompts(self, ctx: Context, params: Any) -> Wire:
        more = [{"name": "test_added_prompt", "description": "Comes and goes"}]
        return {"prompts": [*PROMPTS, *(more if self.has_more_prompts else [])]}

    async def _get_prompt(self, ctx: Context, params: types.GetPromptRequestParams) -> Wire:
        given = params.arguments or {}
        match params.name:
            case "test_simple_prompt":
                content = [text("This is a simple prompt for testing.")]
            case "test_prompt_with_arguments":
                content = [text(f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'")]
            case "test_prompt_with_embedded_resource":
                words = "Embedded resource content for testing."
                resource = {"uri": given["resourceUri"], "mimeType": "text/plain", "text": words}
                content = [
                    {"type": "resource", "resource": resource},
                    text("Please process the embedded resource above."),
                ]
            case "test_prompt_with_image":
                picture = {"type": "image", "data": PIXEL, "mimeType": "image/png"}
                content = [picture, text("Please analyze the image above.")]
            case "test_input_required_result_prompt":
                found = answers(ctx.params or {}, "user_context")
                if not found:
                    return wants(
                        {"user_context": form("What context should the prompt use?", context={"type": "string"})}
                    )
                content = [text(f"In this context: {found['user_context']['content']['context']}")]
            case _:
                raise MCPError(types.INVALID_PARAMS, f"Unknown prompt: {params.name}")
        return {"messages": [{"role": "user", "content": block} for block in content]}

    async def _list_resources(self, ctx: Context, params: Any) -> Wire:
        return {"resources": RESOURCES}

    async def _list_templates(self, ctx: Context, params: Any) -> Wire:
        template = {"uriTemplate": "test://template/{id}/data", "name": "Template", "description": "By id"}
        return {"resourceTemplates": [{**template, "mimeType": "application/json"}]}

    async def _read(self, ctx: Context, params: types.ReadResourceRequestParams) -> Wire:
        uri = str(params.uri)
        if uri == "test://static-binary":
            return {"contents": [{"uri": uri, "mimeType": "image/png", "blob": PIXEL}]}
        if uri == "test://static-text":
            words, kind = "This is the content of the static text resource.", "text/plain"
        elif uri == "test://watched-resource":
            words, kind = "This changes.", "text/plain"
        elif uri.startswith("test://template/") and uri.endswith("/data"):
            name = uri.removeprefix("test://template/").removesuffix("/data")
            words, kind = (
                json.dumps({"id": name, "templateTest": True, "data": f"Data for ID: {name}"}),
                "application/json",
            )
        else:
            raise MCPError(types.INVALID_PARAMS, "Resource not found", {"uri": uri})
        return {"contents": [{"uri": uri, "mimeType": kind, "text": words}]}

    async def _complete(self, ctx: Context, params: Any) -> Wire:
        return {"completion": {"values": ["test1", "test2"], "total": 2, "hasMore": False}}

    async def _nothing(self, ctx: Context, params: Any) -> Wire:
        return {}

    async def _initialized(self, ctx: Context, params: Any) -> None:
        self.clients.append(ctx.session)


async def _whole(handler: Callable[[Context, Any], Awaitable[Wire]], ctx: Context, params: Any) -> Wire:
    """What the stateless era wants in every result; the SDK takes it out for the other."""
    return {"resultType": "complete", **await handler(ctx, params)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--transport", choices=("stdio", "http"), default="stdio")
    parser.add_argument("--port-file", type=Path)
    parser.add_argument("--legacy-only", action="store_true")
    options = parser.parse_args()
    server = Everything()
    if options.transport == "stdio":
        anyio.run(lambda: serve_stdio(server, legacy_only=options.legacy_only))
    else:
        legacy = options.legacy_only
        anyio.run(lambda: serve_network(server, "http", port_file=options.port_file, legacy_only=legacy))


if __name__ == "__main__":
    main()
