"""A pydantic-ai agent with a model that is a function."""

from typing import Any

from pydantic_ai import Agent, BinaryContent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from squidbot import AgentMCPService
from squidbot.integrations.pydantic_ai import tools_for
from tests.integrations.scene import ROLE, Answer, Seen, Turns


async def play(door: AgentMCPService, turns: Turns) -> Seen:
    offered: dict[str, dict[str, Any]] = {}
    left = list(turns)

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        offered.update({tool.name: tool.parameters_json_schema for tool in info.function_tools})
        if not left:
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(call.name, call.json) for call in left.pop(0)])

    agent = Agent(FunctionModel(model), toolsets=[await tools_for(door, ROLE)])
    run = await agent.run("work")
    parts = [part for message in run.all_messages() for part in message.parts]
    return Seen(offered, [_answer(part) for part in parts if isinstance(part, ToolReturnPart)], run.output)


def _answer(part: ToolReturnPart) -> Answer:
    content: Any = part.content
    blocks = content if isinstance(content, list) else [content]
    texts = [block for block in blocks if isinstance(block, str)]
    pictures = [block.data for block in blocks if isinstance(block, BinaryContent)]
    return Answer("\n".join(texts), part.outcome != "success", part.metadata, tuple(pictures))
