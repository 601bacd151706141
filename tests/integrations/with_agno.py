"""An Agno agent with a scripted model."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from typing import Any

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools.function import ToolResult

from squidbot import AgentMCPService
from squidbot.integrations.agno import tools_for
from tests.integrations.scene import ROLE, Answer, Seen, Turns


@dataclass
class Scripted(Model):
    """A model that says what the script has next."""

    id: str = "scripted"
    turns: Turns = ()
    offered: dict[str, Any] = field(default_factory=dict)

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        self.offered |= {tool["function"]["name"]: tool["function"]["parameters"] for tool in kwargs["tools"]}
        if not self.turns:
            return ModelResponse(role="assistant", content="done")
        calls, self.turns = self.turns[0], self.turns[1:]
        return ModelResponse(
            role="assistant",
            tool_calls=[
                {"id": f"call-{n}", "type": "function", "function": {"name": call.name, "arguments": call.json}}
                for n, call in enumerate(calls)
            ],
        )

    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise AssertionError("the agent runs asynchronously")

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Iterator[ModelResponse]:
        raise AssertionError("nothing is streamed here")

    def ainvoke_stream(self, *args: Any, **kwargs: Any) -> AsyncIterator[ModelResponse]:
        raise AssertionError("nothing is streamed here")

    def _parse_provider_response(self, response: Any, **kwargs: Any) -> ModelResponse:
        raise AssertionError("there is no provider")

    def _parse_provider_response_delta(self, response: Any) -> ModelResponse:
        raise AssertionError("there is no provider")


async def play(door: AgentMCPService, turns: Turns) -> Seen:
    kept: dict[str, Any] = {}

    async def hook(function_name: str, function_call: Any, arguments: dict[str, Any]) -> Any:
        result = await function_call(**arguments)
        assert isinstance(result, ToolResult)
        kept[function_name] = result.metadata
        return result

    model = Scripted(turns=turns)
    agent = Agent(model=model, tools=[await tools_for(door, ROLE)], tool_hooks=[hook], telemetry=False)
    run = await agent.arun("work")
    # Agno shows pictures in a message of their own, after those of the tools.
    pictures = tuple(image.content for message in run.messages for image in message.images or ())
    answers = [
        Answer(str(message.content), bool(message.tool_call_error), kept.get(str(message.tool_name)), pictures)
        for message in run.messages
        if message.role == "tool"
    ]
    return Seen(model.offered, answers, str(run.content))
