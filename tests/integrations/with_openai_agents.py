"""An agent of the OpenAI Agents SDK with the SDK's own scripted model."""

from base64 import b64decode
from typing import Any

from agents import Agent, RunConfig, Runner
from agents.items import ToolCallOutputItem
from agents.testing import ScriptedModel, assistant_message
from openai.types.responses import ResponseFunctionToolCall

from squidbot import AgentMCPService
from squidbot.integrations.openai_agents import tools_for
from tests.integrations.scene import ROLE, Answer, Call, Seen, Turns


async def play(door: AgentMCPService, turns: Turns) -> Seen:
    script: list[Any] = [
        [_called(call, f"call-{n}-{m}") for m, call in enumerate(calls)] for n, calls in enumerate(turns)
    ]
    model = ScriptedModel([*script, [assistant_message("done")]])
    agent = Agent(name="worker", model=model, tools=list(await tools_for(door, ROLE)))
    run = await Runner.run(agent, "work", run_config=RunConfig(tracing_disabled=True))
    assert model.first_call is not None
    offered = {tool.name: tool.params_json_schema for tool in model.first_call.tools}
    return Seen(offered, [_answer(i) for i in run.new_items if isinstance(i, ToolCallOutputItem)], run.final_output)


def _called(call: Call, identity: str) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", name=call.name, arguments=call.json, call_id=identity)


def _answer(item: ToolCallOutputItem) -> Answer:
    parts: Any = item.raw_item["output"]
    if isinstance(parts, str):
        return Answer(parts, parts.startswith("Error: "), item.custom_data)
    texts = [part["text"] for part in parts if part["type"] == "input_text"]
    images = [part["image_url"].partition(",")[2] for part in parts if part["type"] == "input_image"]
    return Answer("\n".join(texts), False, item.custom_data, tuple(b64decode(image) for image in images))
