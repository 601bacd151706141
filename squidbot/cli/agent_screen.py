"""What a person or a program sees of an agent at work: the answer on stdout, everything else beside it."""

import json
import sys
from contextlib import ExitStack
from dataclasses import asdict
from typing import Any, Literal, TypeAlias

import click

from squidbot.cli.agent_bars import CallBars
from squidbot.cli.errors import explained
from squidbot.cli.output import Output
from squidbot.core.domain.agent_events import (
    AgentEvent,
    AgentRun,
    CallBegan,
    CallEnded,
    CallProgress,
    Done,
    MessageKept,
    Noted,
    Step,
    TextSaid,
    TurnVoid,
    UsageTold,
)
from squidbot.core.domain.conversation import TokenUsage

Form: TypeAlias = Literal["people", "json", "stream"]

_LONGEST_NAME = 64
_LONGEST_ARGUMENTS = 100
_LONGEST_REASON = 200
_SHOWN_LINES = 12
_COLORS = {"ok": "green", "refused": "yellow", "limited": "yellow", "cancelled": "yellow"}
_PLAIN: dict[type[AgentEvent], str] = {TextSaid: "text", CallProgress: "progress", TurnVoid: "void", Noted: "note"}
"""Events that are shown to programs as they are, and what they are called there."""
_REASONS = {
    "steps": "It has taken all its steps (agent.max_steps, --max-steps) and was ended.",
    "time": "It has used up its time (agent.max_seconds) and was ended.",
    "tokens": "It has used up its tokens (agent.max_tokens) and was ended.",
    "repeats": "It made the same call again and again, and was ended.",
    "length": "The model's answer was cut off: it ran out of room (model.max_output).",
    "refused": "The model will not answer this.",
}


class Screen:
    """Hears what happens and shows it, in one of three forms."""

    def __init__(self, output: Output, *, form: Form, verbosity: int = 0) -> None:
        self._output = output
        self.form: Form = form
        self._verbosity = verbosity
        self._streams = form == "people" and output.on_terminal
        self._open = False
        """Whether a line on the terminal has not ended yet."""
        self._bars = CallBars(output)
        self._is_done = False
        self._spinner = ExitStack()
        self._under_way: set[str] = set()

    def begin(self) -> None:
        """A request goes to the model."""
        self._is_done = False
        self._wait()

    def emit(self, event: AgentEvent) -> None:
        """Satisfies `Emit`."""
        self._is_done = self._is_done or isinstance(event, Done)
        if self.form == "stream":
            self._line(event)
            return
        if not isinstance(event, MessageKept | UsageTold):
            self._spinner.close()
        self._show(event)

    def _line(self, event: AgentEvent) -> None:
        document = _event_json(event)
        if document is not None:
            # What the model says, and a provider's or a server's word, may hold a secret that nobody has taken out yet.
            self._output.write(json.dumps(self._output.redactor.tree(document), ensure_ascii=False, default=str))

    def _show(self, event: AgentEvent) -> None:
        match event:
            case TextSaid(text=text) if self._streams and text:
                sys.stdout.write(self._output.clean(text))
                sys.stdout.flush()
                self._open = not text.endswith("\n")
            case CallBegan():
                self._end_line()
                self._under_way.add(event.id)
                self._bars.began(event)
            case CallProgress():
                self._bars.told(event)
            case Done():
                self._end_line()
            case CallEnded():
                self._end_line()
                self._bars.ended(event)
                self._call(event)
                self._under_way.discard(event.id)
                self._wait()
            case Noted(text=text):
                self._end_line()
                self._output.note(text)
                self._wait()
            case TurnVoid() if self._streams:
                self._end_line()
                self._output.note("These words do not count: the model begins anew.")

    def failed(self, error: BaseException) -> None:
        """Nothing more will happen: who reads events is told so by the last of them, whenever it comes to that."""
        self._spinner.close()
        if self.form == "stream" and not self._is_done:
            stopped = isinstance(error, KeyboardInterrupt)
            self.emit(Done("cancelled" if stopped else "error", "", str(explained(error))))

    def document(self, run: AgentRun, *, role: str, model: str, session: str | None) -> None:
        """The whole run as one document, for programs."""
        self._output.document(self._output.redactor.tree(run_json(run, role=role, model=model, session=session)))

    def answer(self, run: AgentRun) -> None:
        """The end of a run, for people: the answer where it was not shown as it came, and what it took."""
        if not self._streams and run.answer:
            self._output.write(self._output.redactor.text(run.answer))
        if run.stop_reason in _REASONS:
            self._output.note(_REASONS[run.stop_reason])
        calls = sum(len(step.calls) for step in run.steps)
        cost = "" if run.usage.cost is None else f", ${run.usage.cost:.4f}"
        self._output.note(
            f"{_count(len(run.steps), 'step')}, {_count(calls, 'call')}, "
            f"{run.usage.input:,} tokens read, {run.usage.output:,} written{cost}"
        )

    def _call(self, call: CallEnded) -> None:
        reason = "" if call.outcome == "ok" else f": {_cut(call.text, _LONGEST_REASON)}"
        what = f"{_cut(call.name, _LONGEST_NAME)} {_cut(call.arguments, _LONGEST_ARGUMENTS)}"
        words = self._output.clean(f"{what}  {call.seconds:.2f} s{reason}", newlines=False)
        label = f"{call.outcome:>8}"
        if self._output.dressed_aside:
            label = click.style(label, fg=_COLORS.get(call.outcome, "red"))
        sys.stderr.write(f"{label}  {words}\n")
        if self._verbosity:
            lines = self._output.clean(call.text).splitlines()
            more = [f"… {len(lines) - _SHOWN_LINES} more lines"] if len(lines) > _SHOWN_LINES else []
            for line in [*lines[:_SHOWN_LINES], *more]:
                sys.stderr.write(f"          {line}\n")
        sys.stderr.flush()

    def _wait(self) -> None:
        """Show that the model is at work, where somebody looks and nothing else moves."""
        if self.form == "people" and not self._under_way:
            self._spinner.close()
            self._spinner.enter_context(self._output.waiting("Thinking…"))

    def _end_line(self) -> None:
        if self._open:
            sys.stdout.write("\n")
            sys.stdout.flush()
            self._open = False


def run_json(run: AgentRun, *, role: str, model: str, session: str | None) -> dict[str, Any]:
    """A run as programs read it."""
    document = {
        "answer": run.answer,
        "role": role,
        "model": model,
        "steps": [_step_json(step) for step in run.steps],
        "usage": _usage_json(run.usage),
        "stop_reason": run.stop_reason,
        "records": list(run.records),
    }
    return document if session is None else {**document, "session": session}


def _step_json(step: Step) -> dict[str, Any]:
    return {"text": step.text, "calls": [_call_json(call) for call in step.calls], "usage": _usage_json(step.usage)}


def _call_json(call: CallEnded) -> dict[str, Any]:
    return {
        "id": call.id,
        "name": call.name,
        "server": call.tool.server if call.tool else None,
        "tool": call.tool.tool if call.tool else None,
        "arguments": _parsed(call.arguments),
        "outcome": call.outcome,
        "seconds": call.seconds,
        "record": call.record,
        "result": call.text,
    }


def _event_json(event: AgentEvent) -> dict[str, Any] | None:
    match event:
        case TextSaid() | CallProgress() | TurnVoid() | Noted():
            return {"event": _PLAIN[type(event)], **asdict(event)}
        case CallBegan():
            arguments = _parsed(event.arguments)
            return {"event": "call", "step": event.step, "id": event.id, "name": event.name, "arguments": arguments}
        case CallEnded(step=step):
            return {"event": "result", "step": step, **_call_json(event)}
        case UsageTold(step=step, usage=usage):
            return {"event": "usage", "step": step, **_usage_json(usage)}
        case Done():
            return {"event": "done", "stop_reason": event.reason, "answer": event.answer, "error": event.error}
        case _:
            return None


def _usage_json(usage: TokenUsage) -> dict[str, Any]:
    return {**asdict(usage), "total": usage.total}


def _parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return arguments


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[:longest]}…"


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'s' * (number != 1)}"
