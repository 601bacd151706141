"""`squidbot agent` from the settings file to a model over HTTP and back, as OpenAI's and as Anthropic's."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Squidbot
from tests.fixtures.aimock import Mock, Provider, aimock, calls, turn
from tests.fixtures.running import plain_entry

pytestmark = [pytest.mark.peers, pytest.mark.requirement("G-02")]
PROVIDERS = pytest.mark.parametrize("provider", ["openai", "anthropic"])


def settings(folder: Path, provider: Provider, mock: Mock) -> None:
    model = {"provider": provider, "name": "m-1", "base_url": mock.base_url(provider), "api_key": "sk-canary-7531"}
    document: dict[str, Any] = {"tools": {"mcp_servers": {"plain": plain_entry()}}}
    document["model"] = {**model, "price": {"input": 1.0, "output": 2.0}}
    (folder / "squidbot.json").write_text(json.dumps(document))


@PROVIDERS
def test_a_request_goes_all_the_way_and_shows_what_it_cost(
    squidbot: Squidbot, folder: Path, provider: Provider
) -> None:
    """Settings, model, tool, record, answer: each part is the real one."""
    usage = {"usage": {"prompt_tokens": 100, "completion_tokens": 10, "input_tokens": 100, "output_tokens": 10}}
    echoed = turn(0, {**calls(("mcp_plain_echo", {"text": "hi"})), **usage})
    with aimock([echoed, turn(1, {"content": "It said hi.", **usage})]) as mock:
        settings(folder, provider, mock)
        ran = squidbot("agent", "-m", "Say hi.")
        again = squidbot("agent", "-m", "Say hi.", "--json").json
    assert (ran.code, ran.out) == (0, "It said hi.\n")
    assert ran.err.splitlines()[-1].endswith("200 tokens read, 20 written, $0.0002")
    assert (again["model"], again["stop_reason"], len(again["records"])) == ("m-1", "answered", 1)


@PROVIDERS
@pytest.mark.parametrize(
    ("status", "message", "code"),
    [
        (401, "wrong key sk-canary-7531", 2),
        (404, "no such model", 2),
        (400, "m-1 does not support tools", 2),
        (400, "x", 1),
    ],
)
def test_what_the_provider_refuses_ends_the_command_with_its_cause_and_no_record(
    squidbot: Squidbot, folder: Path, provider: Provider, status: int, message: str, code: int
) -> None:
    """The cause and the next step, never the key, and nothing half recorded."""
    with aimock([{"match": {}, "response": {"error": {"message": message, "type": "x"}, "status": status}}]) as mock:
        settings(folder, provider, mock)
        ran = squidbot("agent", "-m", "Say hi.", "--json")
    assert (ran.code, ran.error["code"]) == (code, "model")
    assert f"status {status}" in ran.error["message"]
    assert code == 1 or ran.error["hint"]
    assert "canary" not in ran.out + ran.err
    assert squidbot("audit", "tail", "--json").json == []
