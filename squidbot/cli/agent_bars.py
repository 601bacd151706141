"""How far an agent's calls are, on a terminal: a bar for each that says so, gone when it is over."""

from contextlib import ExitStack
from typing import TYPE_CHECKING

from squidbot.cli.output import Output
from squidbot.core.domain.agent_events import CallBegan, CallEnded, CallProgress

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID


class CallBars:
    """The bars of all calls under way; nothing at all where nobody could see them move."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._names: dict[str, str] = {}
        self._tasks: dict[str, TaskID] = {}
        self._shown = ExitStack()
        self._bars: Progress | None = None

    def began(self, call: CallBegan) -> None:
        self._names[call.id] = call.name

    def told(self, event: CallProgress) -> None:
        """Show it, in place of what was shown of this call before."""
        name = self._names.get(event.id)
        if name is None or not self._output.dressed_aside:
            return
        if self._bars is None:
            self._bars = self._shown.enter_context(self._output.bars())
        words = self._output.clean(f"{name}: {event.message}" if event.message else name, newlines=False)
        if event.id not in self._tasks:
            self._tasks[event.id] = self._bars.add_task(words, total=event.total)
        self._bars.update(
            self._tasks[event.id], completed=event.progress, total=event.total, description=words, refresh=True
        )

    def ended(self, call: CallEnded) -> None:
        """Take its bar away, and with the last one everything that moves."""
        self._names.pop(call.id, None)
        task = self._tasks.pop(call.id, None)
        if self._bars is None or task is None:
            return
        self._bars.remove_task(task)
        if not self._tasks:
            self._bars = None
            self._shown.close()
