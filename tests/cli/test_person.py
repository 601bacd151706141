"""The person at the terminal, and the thread that works for them."""

import os
import signal
import threading
from concurrent.futures import Future
from typing import Any

import pytest

from squidbot.cli.output import Output
from squidbot.cli.person import Ended, TerminalPerson, run_with_person

pytestmark = [pytest.mark.requirement("G-02", "G-08"), pytest.mark.deadline(30)]


async def work() -> str:
    return "done"


@pytest.mark.parametrize(("number", "error"), [(signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Ended)])
def test_an_interrupt_while_the_thread_starts_is_heeded_and_nothing_hangs(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals, error: type[BaseException]
) -> None:
    """The thread is waited for at the end, so whoever leaves while it starts must tell it to stop."""
    result = Future.result

    def interrupted(future: Future[Any], timeout: float | None = None) -> Any:
        os.kill(os.getpid(), number)
        return result(future, timeout)

    monkeypatch.setattr(Future, "result", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        run_with_person(TerminalPerson(Output(as_json=False)), work)
    assert caught.type is error


def test_an_interrupt_after_the_work_takes_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done is done: its answer is shown, and the thread is ended all the same."""
    join = threading.Thread.join

    def interrupted(thread: threading.Thread, *arguments: Any, **more: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        join(thread, *arguments, **more)

    monkeypatch.setattr(threading.Thread, "join", interrupted)
    before = threading.active_count()
    assert run_with_person(TerminalPerson(Output(as_json=False)), work) == "done"
    assert threading.active_count() == before
