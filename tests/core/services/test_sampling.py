"""Servers that ask the agent's model: answered within their budget, refused with a reason beyond it."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from squidbot.core.domain.conversation import (
    Message,
    ModelEvent,
    ModelTool,
    Restarted,
    Stopped,
    TextDelta,
    TokenUsage,
    UserMessage,
)
from squidbot.core.domain.errors import Declined, ModelError
from squidbot.core.services.sampling import Sampler, SamplingBudget
from tests.fakes.models import FakeModel, says

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-05")]


def request(text: str = "What is six times seven?", **more: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}], "maxTokens": 100, **more}


async def test_a_server_that_may_ask_is_answered_by_the_model_without_tools() -> None:
    """It gets words, and nothing of the agent's conversation or tools."""
    model = FakeModel([[TextDelta("half"), Restarted("dropped"), *says("Forty-two."), TokenUsage(20, 5)]])
    sampler = Sampler(model, {"maths": SamplingBudget(2, 1_000)})
    answer = await sampler.answer("maths", request(systemPrompt="Count well."))
    assert answer == {
        "role": "assistant",
        "content": {"type": "text", "text": "Forty-two."},
        "model": "fake",
        "stopReason": "endTurn",
    }
    [asked] = model.requests
    assert asked.messages == (UserMessage("What is six times seven?"),)
    assert (asked.tools, asked.max_tokens) == ((), 100)
    assert asked.system.endswith("Count well.")


@pytest.mark.parametrize(
    ("server", "params", "reason"),
    [
        ("other", request(), "do not allow server 'other'"),
        ("maths", request(tools=[{"name": "x"}]), "no tools are offered"),
        ("maths", {"messages": []}, "no messages"),
        ("maths", {"messages": ["x"]}, "a message that is none"),
        ("maths", {}, "no messages"),
        ("maths", request("x" * 300_000), "longer than"),
        ("maths", request("x" * 5_000), "used up its 1000 tokens"),
    ],
)
async def test_what_is_not_answered_is_declined_with_the_reason(server: str, params: Any, reason: str) -> None:
    """A server's author should see why, and the model should never have been asked."""
    model = FakeModel()
    with pytest.raises(Declined, match=reason):
        await Sampler(model, {"maths": SamplingBudget(2, 1_000)}).answer(server, params)
    assert model.requests == []


async def test_a_model_that_fails_is_a_refusal() -> None:
    """A server is told no more of our model than that it did not answer."""
    model = FakeModel([[ModelError("key sk-1 is wrong", kind="auth")]])
    with pytest.raises(Declined, match=r"did not answer \(auth\)"):
        await Sampler(model, {"maths": SamplingBudget(2, 1_000)}).answer("maths", request())


class Waiting:
    """A model that answers nobody before all have asked who can."""

    name = "waiting"

    def __init__(self, *, used: int) -> None:
        self.asked = 0
        self.promised = 0
        self.go = anyio.Event()
        self._used = used

    async def stream(
        self,
        messages: Sequence[Message],
        *,
        system: str = "",
        tools: Sequence[ModelTool] = (),
        max_tokens: int | None = None,
    ) -> AsyncIterator[ModelEvent]:
        self.asked += 1
        self.promised += max_tokens or 0
        await self.go.wait()
        yield TextDelta("yes")
        yield TokenUsage(0, self._used)
        yield Stopped("end")

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(
    ("budget", "most"),
    [(SamplingBudget(10, 1_000_000), 10), (SamplingBudget(1_000_000, 500), 5), (SamplingBudget(3, 500), 3)],
)
async def test_of_a_thousand_requests_no_more_than_the_budget_reach_the_model(
    budget: SamplingBudget, most: int
) -> None:
    """T20: a server that asks and asks, at once or one after the other, costs what was allowed and not more."""
    model = Waiting(used=100)
    sampler = Sampler(model, {"greedy": budget})
    outcomes: list[str] = []

    async def ask() -> None:
        try:
            await sampler.answer("greedy", request())
            outcomes.append("answered")
        except Declined:
            outcomes.append("declined")

    async with anyio.create_task_group() as tasks:
        for _ in range(500):
            tasks.start_soon(ask)
        with anyio.fail_after(10):
            while len(outcomes) + model.asked < 500:
                await anyio.lowlevel.checkpoint()
        model.go.set()
    for _ in range(500):
        await ask()
    assert len(outcomes) == 1_000
    assert outcomes.count("answered") == model.asked <= most
    assert model.asked >= most - 1
    assert model.promised <= budget.tokens


async def test_what_was_not_used_up_is_given_back() -> None:
    """A request that asked for much and took little leaves the rest to the next."""
    model = Waiting(used=1)
    model.go.set()
    sampler = Sampler(model, {"modest": SamplingBudget(100, 200)})
    for _ in range(50):
        await sampler.answer("modest", request())
    assert model.asked == 50
