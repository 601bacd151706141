"""The JSON that programs read, by command line or HTTP: one function per shape of the outer surface."""

import base64
import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from squidbot.core.domain.audit import Verification
from squidbot.core.domain.content import AudioContent, BinaryContent, Content, ImageContent, TextContent
from squidbot.core.domain.members import NewToken, TokenRecord
from squidbot.core.domain.moments import stamp
from squidbot.core.domain.prompts import PromptDefinition, RenderedPrompt, ResourceDefinition
from squidbot.core.domain.roles import MCPToolMapper
from squidbot.core.domain.servers import ServerStatus
from squidbot.core.domain.tools import ToolDefinition, ToolResult


def tool_json(tool: ToolDefinition) -> dict[str, Any]:
    """One tool in `tools list`."""
    return {
        "name": tool.name,
        "server": tool.server,
        "tool": tool.tool,
        "description": tool.description,
        "parameters": dict(tool.parameters),
    }


def tokens_of(tools: Sequence[ToolDefinition]) -> int:
    """Roughly what a list of tools costs a model: a token is about four bytes of it."""
    return sum(len(json.dumps(tool_json(tool), default=str)) for tool in tools) // 4


def result_json(tool: ToolDefinition, result: ToolResult, *, duration_ms: float) -> dict[str, Any]:
    """What `tools call` came to."""
    return {
        "name": tool.name,
        "server": tool.server,
        "tool": tool.tool,
        "is_error": result.is_error,
        "content": [content_json(block) for block in result.content],
        "structured": result.structured,
        "duration_ms": round(duration_ms, 1),
        "record": result.record,
    }


def content_json(block: Content) -> dict[str, Any]:
    """One block of content, bytes in base64."""
    match block:
        case TextContent(text=text):
            return {"type": "text", "text": text}
        case ImageContent(data=data, mime_type=mime_type):
            return {"type": "image", "mime_type": mime_type, "data": _base64(data)}
        case AudioContent(data=data, mime_type=mime_type):
            return {"type": "audio", "mime_type": mime_type, "data": _base64(data)}
        case BinaryContent():
            return {
                "type": "binary",
                "uri": block.uri,
                "name": block.name,
                "mime_type": block.mime_type,
                "data": None if block.data is None else _base64(block.data),
                "text": block.text,
                "kind": block.kind,
            }


def status_json(status: ServerStatus, clean: Callable[[str], str]) -> dict[str, Any]:
    """One server in `servers list`; `clean` takes secrets out of its last words."""
    return {
        "name": status.name,
        "transport": status.transport,
        "state": status.state,
        "tools": status.tools,
        "protocol": status.protocol,
        "error": None if status.error is None else clean(status.error),
    }


def prompt_json(prompt: PromptDefinition) -> dict[str, Any]:
    """One prompt in `prompts list`."""
    return {
        "name": prompt.name,
        "server": prompt.server,
        "prompt": prompt.prompt,
        "description": prompt.description,
        "arguments": [
            {"name": argument.name, "description": argument.description, "required": argument.required}
            for argument in prompt.arguments
        ],
    }


def rendered_json(prompt: PromptDefinition, rendered: RenderedPrompt) -> dict[str, Any]:
    """What `prompts render` came to."""
    return {
        "name": prompt.name,
        "server": prompt.server,
        "prompt": prompt.prompt,
        "description": rendered.description,
        "messages": [{"role": message.role, "content": content_json(message.content)} for message in rendered.messages],
    }


def resource_json(resource: ResourceDefinition) -> dict[str, Any]:
    """One resource in `resources list`."""
    return {
        "server": resource.server,
        "uri": resource.uri,
        "name": resource.name,
        "description": resource.description,
        "mime_type": resource.mime_type,
        "size": resource.size,
        "template": resource.is_template,
    }


def verification_json(verdict: Verification) -> dict[str, Any]:
    """What `audit verify` found."""
    bad = None if verdict.first_bad is None else dict(verdict.first_bad)
    return {"ok": verdict.ok, "records": verdict.records, "chains": verdict.chains, "first_bad": bad}


def role_json(mapper: MCPToolMapper, name: str) -> dict[str, Any]:
    """One role in `roles list`."""
    role = mapper.roles.get(name)
    return {
        "role": name,
        "description": role.description if role else "",
        "tools": mapper.get_all_tools_for_role(name),
        "grants": [
            {
                "server": g.server,
                "tool": g.tool,
                "when": {key: list(globs) for key, globs in g.when},
                "source": g.source,
            }
            for g in (role.grants if role else ())
        ],
        "revision": mapper.revision,
    }


def token_json(token: TokenRecord) -> dict[str, Any]:
    """One token in `tokens list`: whose and what for, never the token itself."""
    return {
        "id": token.id,
        "role": token.standing,
        "name": token.name,
        "member": token.member,
        "created": token.created,
        "expires": _until(token.expires),
        "revoked": token.revoked,
    }


def new_token_json(made: NewToken) -> dict[str, Any]:
    """What `tokens create` made: the only time that the token is seen."""
    record = made.record
    return {
        "id": record.id,
        "token": made.token,
        "role": record.standing,
        "name": record.name,
        "expires": _until(record.expires),
    }


def _until(expires: float | None) -> str | None:
    return None if expires is None else stamp(datetime.fromtimestamp(expires, UTC))


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")
