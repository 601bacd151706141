"""Work that would keep everybody waiting is done in a thread, as long as the machine has one to give."""

from collections.abc import Callable
from typing import TypeVar

import anyio.to_thread

T = TypeVar("T")


async def apart(work: Callable[[], T]) -> T:
    """What `work` gives, while the loop goes on; without a thread to do it in the loop has to wait."""
    done: list[T] = []
    failed: list[BaseException] = []

    def noted() -> None:
        try:
            done.append(work())
        except BaseException as error:  # noqa: BLE001 - raised where it was asked for
            failed.append(error)

    try:
        await anyio.to_thread.run_sync(noted)
    except RuntimeError:
        noted()
    if failed:
        raise failed[0]
    return done[0]
