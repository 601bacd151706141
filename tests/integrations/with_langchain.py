"""A LangChain chat model that is scripted, its tools bound to it, in the loop that every LangChain agent runs."""

from base64 import b64decode
from typing import Any

import anyio
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable
from langchain_core.utils.function_calling import convert_to_openai_tool

from squidbot import AgentMCPService
from squidbot.integrations.langchain import tools_for
from tests.integrations.scene import ROLE, Answer, Seen, Turns


class Scripted(GenericFakeChatModel):
    """A model that takes tools as OpenAI's does."""

    def bind_tools(self, tools: Any, **kwargs: Any) -> Runnable[Any, Any]:
        return self.bind(tools=[convert_to_openai_tool(tool) for tool in tools], **kwargs)


async def play(door: AgentMCPService, turns: Turns) -> Seen:
    script = [
        AIMessage(
            "",
            tool_calls=[
                {"name": call.name, "args": call.arguments, "id": f"call-{n}-{m}"} for m, call in enumerate(calls)
            ],
        )
        for n, calls in enumerate(turns)
    ]
    tools = {tool.name: tool for tool in await tools_for(door, ROLE)}
    bound: Any = Scripted(messages=iter([*script, AIMessage("done")])).bind_tools(list(tools.values()))
    messages: list[Any] = [HumanMessage("work")]
    while True:
        said = await bound.ainvoke(messages)
        messages.append(said)
        if not said.tool_calls:
            break
        messages += await _all(tools, said.tool_calls)
    answers = [_answer(message) for message in messages if isinstance(message, ToolMessage)]
    sent = {tool["function"]["name"]: tool["function"]["parameters"] for tool in bound.kwargs["tools"]}
    assert sent.keys() == tools.keys()
    return Seen({name: tool.args_schema for name, tool in tools.items()}, answers, messages[-1].content)


async def _all(tools: dict[str, Any], calls: list[Any]) -> list[ToolMessage]:
    answers: dict[str, ToolMessage] = {}

    async def one(call: Any) -> None:
        answers[call["id"]] = await tools[call["name"]].ainvoke(call)

    async with anyio.create_task_group() as tasks:
        for call in calls:
            tasks.start_soon(one, call)
    return [answers[call["id"]] for call in calls]


def _answer(message: ToolMessage) -> Answer:
    content: Any = message.content
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    pictures = [b64decode(block["base64"]) for block in blocks if block["type"] == "image"]
    return Answer("\n".join(texts), message.status == "error", message.artifact, tuple(pictures))
