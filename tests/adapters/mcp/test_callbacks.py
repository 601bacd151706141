"""Between the SDK's callbacks and a program's own: what a program does wrong stays with it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest

from squidbot.adapters.mcp.asking import session_callbacks
from squidbot.adapters.mcp.callbacks import Callbacks
from squidbot.core.domain.servers import ServerEvent, ServerLog

pytestmark = pytest.mark.anyio

SAMPLE = types.CreateMessageRequestParams(
    messages=[types.SamplingMessage(role="user", content=types.TextContent(text="hi"))], max_tokens=5
)
FORM = types.ElicitRequestFormParams(message="Which?", requested_schema={"type": "object", "properties": {}})
MESSAGE = {"role": "assistant", "content": {"type": "text", "text": "42"}, "model": "m"}


def _raise(_: object) -> None:
    raise RuntimeError("a listener's own fault")


def test_what_nobody_answers_is_not_offered() -> None:
    """A server that is offered sampling will ask for it."""
    assert Callbacks().capabilities(None) == {}
    assert set(session_callbacks(Callbacks(), "s")) == {"logging_callback", "message_handler", "client_info"}

    async def answer(server: str, params: Mapping[str, Any]) -> None:
        """Declines."""

    everything = Callbacks(sampling=answer, elicitation=answer, roots=[])
    assert everything.capabilities({"a": 1}) == {
        "sampling": {},
        "elicitation": {"form": {}, "url": {}},
        "roots": {"listChanged": True},
        "experimental": {"config": {"a": 1}},
    }


@pytest.mark.parametrize(
    ("answer", "given"),
    [
        (MESSAGE, "42"),
        (None, "Sampling was declined"),
        ({"role": "assistant"}, "the client's answer is not valid"),
        (["no mapping"], "the client's answer is not valid"),
        (RuntimeError("/a/path"), "the client could not answer"),
    ],
)
async def test_a_question_to_the_model_is_answered_declined_or_refused_and_never_raises(
    answer: Any, given: str
) -> None:
    """In the stateless era this runs within the agent's own call."""
    asked: list[tuple[str, Any]] = []

    async def model(server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        asked.append((server, params["messages"][0]["content"]["text"]))
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    reply = await session_callbacks(Callbacks(sampling=model), "s")["sampling_callback"](None, SAMPLE)
    words = reply.message if isinstance(reply, types.ErrorData) else reply.content.text
    assert words == given
    assert asked == [("s", "hi")]


@pytest.mark.parametrize(
    ("answer", "given"),
    [({"action": "accept", "content": {"a": "b"}}, "accept"), (None, "decline"), (KeyError("x"), None)],
)
async def test_a_question_to_the_person_is_answered_or_declined(answer: Any, given: str | None) -> None:
    """Nobody at the terminal means no, not an exception."""

    async def person(server: str, params: Mapping[str, Any]) -> Mapping[str, Any] | None:
        if isinstance(answer, Exception):
            raise answer
        return answer  # type: ignore[no-any-return]

    reply = await session_callbacks(Callbacks(elicitation=person), "s")["elicitation_callback"](None, FORM)
    assert getattr(reply, "action", None) == given


async def test_roots_are_uris_whether_given_as_folders_or_as_uris(tmp_path: Path) -> None:
    """The protocol knows only uris; people know folders."""
    listed = await session_callbacks(Callbacks(roots=[tmp_path, "file:///w"]), "s")["list_roots_callback"](None)
    assert [str(root.uri) for root in listed.roots] == [tmp_path.as_uri(), "file:///w"]


@pytest.mark.requirement("G-06")
async def test_logs_notifications_and_exceptions_reach_their_listeners_with_the_servers_name() -> None:
    """With thirty servers a message without a name is noise."""
    logs: list[ServerLog] = []
    events: list[ServerEvent] = []
    given = session_callbacks(Callbacks(on_log=logs.append, on_event=events.append), "s")
    await given["logging_callback"](types.LoggingMessageNotificationParams(level="alert", data={"n": 1}, logger="db"))
    await given["message_handler"](types.ToolListChangedNotification())
    fault = RuntimeError("odd line")
    await given["message_handler"](fault)
    assert logs == [ServerLog("s", "alert", {"n": 1}, "db")]
    assert [(event.server, event.kind, event.method) for event in events] == [
        ("s", "notification", "notifications/tools/list_changed"),
        ("s", "exception", None),
    ]
    assert events[1].error is fault


@pytest.mark.requirement("G-06")
async def test_a_listener_that_fails_and_one_that_is_absent_end_nothing() -> None:
    """A bug in a log handler must not disconnect a server."""
    for callbacks in (Callbacks(on_log=_raise, on_event=_raise), Callbacks()):
        given = session_callbacks(callbacks, "s")
        await given["logging_callback"](types.LoggingMessageNotificationParams(level="info", data="x"))
        await given["message_handler"](types.ToolListChangedNotification())
        await given["message_handler"](object())
