"""Sets an agent up from settings, file and command line, and lets it work: once, or again and again."""

import os
import secrets
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from squidbot.cli.agent_screen import Form, Screen
from squidbot.cli.errors import CommandError, explained
from squidbot.cli.exits import DONE, FAILED
from squidbot.cli.invocation import Invocation
from squidbot.cli.model_choice import choose_model
from squidbot.cli.person import Ended, TerminalPerson, line_editing
from squidbot.core.domain.agent_events import AgentEvent, AgentRun, Bounds, MessageKept
from squidbot.core.domain.briefing import briefing
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.conversation import Message
from squidbot.core.services.agent_loop import AgentLoop
from squidbot.core.services.agent_tools import Rules, Toolbox
from squidbot.core.services.counterpart import AgentCounterpart
from squidbot.core.services.sampling import Sampler

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

    from squidbot.config.agents import AgentDefinition
    from squidbot.config.schema import Settings
    from squidbot.container import AgentMCPService, Session
    from squidbot.core.ports import LanguageModel

_LEAVING = frozenset({"/exit", "/quit", "exit", "quit"})


@dataclass(frozen=True, slots=True)
class Wishes:
    """What was asked for on the command line."""

    message: str | None
    role: str | None
    file: Path | None
    model: str | None
    max_steps: int | None
    session: str | None
    resume: bool
    form: Form


@dataclass(slots=True)
class _Desk:
    """An agent, ready to work, and the conversation so far."""

    loop: AgentLoop
    counterpart: AgentCounterpart
    screen: Screen
    model: "LanguageModel"
    role: str
    session: "Session | None"
    messages: list[Message]

    async def work(self, text: str) -> AgentRun:
        self.counterpart.begin()
        self.screen.begin()
        return await self.loop.run(text, emit=self._heard, history=tuple(self.messages))

    def _heard(self, event: AgentEvent) -> None:
        if isinstance(event, MessageKept):
            self.messages.append(event.message)
            if self.session is not None:
                self.session.keep(event.message)
        self.screen.emit(event)


def run_agent(call: Invocation, wishes: Wishes) -> int:
    """Let an agent work; the answer is the exit code. Raises SquidbotError, KeyboardInterrupt."""
    screen = Screen(call.output, form=wishes.form, verbosity=call.verbosity)
    try:
        return _run_agent(call, wishes, screen)
    except (Exception, KeyboardInterrupt) as error:
        screen.failed(error)
        raise


def _run_agent(call: Invocation, wishes: Wishes, screen: Screen) -> int:
    message = _message(wishes)
    if message is None and wishes.form != "people":
        raise CommandError("a conversation is for people", code="usage", hint="Give the request with -m.")
    definition = _definition(call, wishes)
    person = TerminalPerson(call.output)
    with person.at_work() as portal, ExitStack() as opened:
        settings = call.settings
        named = wishes.model or (definition.model if definition else None)
        chosen = person.wait_for(portal, lambda: choose_model(call, settings.model, named))
        # A script that the settings name stands beside them; one of the command line is where the person is.
        folder = settings.source.parent if settings.source and not named else None
        model = call.container.language_model(chosen, folder=folder)
        opened.callback(portal.call, model.aclose)
        with person.interruptible():
            door = opened.enter_context(portal.wrap_async_context_manager(call.door()))
        caller = person.wait_for(portal, lambda: call.known_role(door, wishes.role))
        desk = _desk(call, wishes, definition, door, replace(caller, origin="agent"), model, person, screen)
        if message is not None:
            return _once(portal, person, desk, message)
        return _conversation(portal, person, call, desk)


def _once(portal: "BlockingPortal", person: TerminalPerson, desk: _Desk, message: str) -> int:
    run = person.wait_for(portal, lambda: desk.work(message))
    if run.error is not None:
        raise run.error
    if desk.screen.form == "json":
        session = desk.session.name if desk.session else None
        desk.screen.document(run, role=desk.role, model=desk.model.name, session=session)
    elif desk.screen.form == "people":
        desk.screen.answer(run)
    return DONE if run.stop_reason == "answered" else FAILED


def _conversation(portal: "BlockingPortal", person: TerminalPerson, call: Invocation, desk: _Desk) -> int:
    """Ask and answer until the person leaves; Ctrl-C ends a turn, Ctrl-D the conversation."""
    call.output.note(f"{desk.model.name} in the role {desk.role!r}. Ctrl-C stops a turn, Ctrl-D or /exit ends.")
    with line_editing(call.container.state() / "agent-history"):
        while True:
            try:
                text = person.typed("> ")
            except Ended:
                raise
            except KeyboardInterrupt:
                sys.stderr.write("\n")
                continue
            except EOFError:
                sys.stderr.write("\n")
                return DONE
            if text.strip() in _LEAVING:
                return DONE
            if not text.strip():
                continue
            try:
                run = person.wait_for(portal, lambda text=text: desk.work(text))  # type: ignore[misc]
            except Ended:
                raise
            except KeyboardInterrupt:
                call.output.note("Stopped.")
                continue
            if run.error is not None:
                call.output.fail(explained(run.error))
            else:
                desk.screen.answer(run)


def _message(wishes: Wishes) -> str | None:
    """The request; None for a conversation. What is piped in is a request, too."""
    message = wishes.message
    if message == "-" or (message is None and not sys.stdin.isatty()):
        message = sys.stdin.read()
    if message is not None and not message.strip():
        raise CommandError("the request is empty", code="usage", hint='Say what is to be done: -m "…".')
    return message


def _definition(call: Invocation, wishes: Wishes) -> "AgentDefinition | None":
    """The agent's own file, whose settings then are the settings. Raises ConfigError."""
    call.container.roots.override([Path.cwd()])
    call.container.converses.override(True)  # noqa: FBT003 - a provider's value
    if wishes.file is None:
        return None
    from squidbot.config.agents import load_agent

    definition = load_agent(wishes.file, call.settings)
    call.container.secrets().update(definition.secrets)
    call.container.settings.override(definition.settings)
    for note in definition.notes:
        call.output.note(f"{wishes.file}: {note}")
    return definition


def _desk(
    call: Invocation,
    wishes: Wishes,
    definition: "AgentDefinition | None",
    door: "AgentMCPService",
    caller: Caller,
    model: "LanguageModel",
    person: TerminalPerson,
    screen: Screen,
) -> _Desk:
    settings = call.settings
    somebody = person if person.is_there and wishes.form == "people" else None
    sampler = Sampler(model, call.container.budgets())
    counterpart = AgentCounterpart(f"agent:{os.getpid()}", sampler=sampler, person=somebody)
    toolbox = Toolbox(
        door,
        caller,
        rules=_rules(call, settings, definition),
        shelf=call.container.shelf(),
        approve=None if somebody is None else somebody.approve,
        counterpart=counterpart,
    )
    bounds = Bounds(
        steps=wishes.max_steps or settings.agent.max_steps,
        seconds=settings.agent.max_seconds,
        tokens=settings.agent.max_tokens,
    )
    session = _session(call, wishes, caller.role)
    return _Desk(
        loop=AgentLoop(model, toolbox, bounds=bounds, system=_briefing(door, caller, definition)),
        counterpart=counterpart,
        screen=screen,
        model=model,
        role=caller.role,
        session=session,
        messages=list(session.messages) if session else [],
    )


def _briefing(door: "AgentMCPService", caller: Caller, definition: "AgentDefinition | None") -> str:
    said = door.instructions(caller)
    role = door.permissions.mapper.roles.get(caller.role)
    return briefing(
        role=caller.role,
        name=definition.name if definition else "",
        description=(definition.description if definition else "") or (role.description if role else ""),
        instructions=definition.instructions if definition else "",
        servers=said,
        keys={server: secrets.token_hex(8) for server in said},
    )


def _rules(call: Invocation, settings: "Settings", definition: "AgentDefinition | None") -> Rules:
    return Rules(
        labels=call.container.flow_labels(),
        flows=settings.agent.flows,
        most_tools=settings.agent.max_tools,
        longest_result=settings.agent.max_result,
        servers=definition.servers if definition else None,
    )


def _session(call: Invocation, wishes: Wishes, role: str) -> "Session | None":
    sessions = call.container.sessions()
    name = wishes.session or (sessions.newest() if wishes.resume else None)
    if name is None:
        if wishes.resume:
            raise CommandError("there is no session to resume", code="usage", hint="--session NAME begins one.")
        return None
    return sessions.open(name, role=role, must_exist=wishes.resume)
