"""Models that fail now and then: when they are asked again, when not, and who takes over."""

import pytest

from squidbot.adapters.models.patience import PatientModel
from squidbot.core.domain.conversation import ModelEvent, ModelNote, Restarted, TextDelta, UserMessage
from squidbot.core.domain.errors import ModelError
from tests.fakes.models import FakeModel, says

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("G-02")]


async def said(model: PatientModel) -> list[ModelEvent]:
    return [event async for event in model.stream([UserMessage("x")])]


@pytest.mark.parametrize(
    ("error", "asked"),
    [
        (ModelError("x", kind="busy"), 4),
        (ModelError("x", kind="limited"), 4),
        (ModelError("x", kind="broken"), 4),
        (ModelError("x", kind="unreachable"), 2),
        (ModelError("x", kind="limited", retry_after=3_600), 1),
        (ModelError("x", kind="auth"), 1),
        (ModelError("x", kind="refused"), 1),
    ],
)
async def test_only_what_may_pass_is_tried_again_and_not_for_ever(error: ModelError, asked: int) -> None:
    """A wrong key does not get better by asking; an hour is longer than anybody waits."""
    model = FakeModel([[error]] * 10)
    with pytest.raises(ModelError):
        await said(PatientModel([model], first_wait=0))
    assert len(model.requests) == asked


async def test_whoever_takes_over_goes_on_and_is_named() -> None:
    """A model that is down is not asked anew in every turn."""
    down, up = FakeModel([[TextDelta("ha"), ModelError("x", kind="auth")]], name="down"), FakeModel(name="up")
    model = PatientModel([down, up], first_wait=0)
    first = await said(model)
    assert [type(event) for event in first[:3]] == [TextDelta, Restarted, ModelNote]
    await said(model)
    assert (model.name, len(down.requests), len(up.requests)) == ("up", 1, 2)
    await model.aclose()
    assert (down.closed, up.closed) == (True, True)


async def test_a_note_of_the_first_try_does_not_count_as_half_an_answer() -> None:
    """Nothing was said yet, so nothing is void."""
    model = FakeModel([[ModelNote("a tool was left out"), ModelError("x", kind="busy")], says("Yes.")])
    events = await said(PatientModel([model], first_wait=0))
    assert not any(isinstance(event, Restarted) for event in events)
