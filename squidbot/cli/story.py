"""A ticket's whole way through the guarded door, told as it happens: each step by a role that may, refused to all others."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from squidbot.cli.invocation import Invocation
from squidbot.cli.scenes import SCENES, Facts, Scene
from squidbot.core.domain.audit import outcome_of
from squidbot.core.domain.callers import Caller
from squidbot.core.domain.errors import SquidbotError, ToolNotPermitted
from squidbot.core.domain.tools import ToolResult

if TYPE_CHECKING:
    from squidbot.container import AgentMCPService


@dataclass(frozen=True, slots=True)
class Stage:
    """Where the story plays."""

    repository: str
    project: str
    live: bool = False
    """On real accounts, whose workflows have fewer stations."""


@dataclass(frozen=True, slots=True)
class Step:
    """One attempt of the story."""

    step: str
    role: str
    tool: str
    outcome: str
    expected: str
    record: str | None


@dataclass(slots=True)
class Told:
    """What came of the story."""

    steps: list[Step] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return bool(self.steps) and all(step.outcome == step.expected and step.record for step in self.steps)

    def document(self) -> dict[str, Any]:
        return {"ok": self.ok, "steps": [asdict(step) for step in self.steps]}


async def play(call: Invocation, stage: Stage) -> Told:
    """Play every scene. It ends early if one fails, since the next ones build on it."""
    told = Told()
    facts: Facts = {"repository": stage.repository, "project": stage.project}
    async with call.door() as door:
        await door.permissions.refresh(now=True)
        for scene in [scene for scene in SCENES if not (stage.live and scene.only_in_practice)]:
            arguments = scene.arguments(facts)
            call.output.tell(f"\n{scene.role}", scene.step)
            allowed, reasons = _sides(door, scene, arguments)
            call.output.tell("  allowed", f"to {', '.join(allowed)}")
            refused = [await _refused(door, scene, role, arguments) for role in reasons]
            done, words = await _done(door, scene, facts, arguments)
            told.steps += [*refused, done]
            call.output.tell(f"  {done.outcome}", f"{scene.tool}: {words}")
            _tell_refusals(call, refused, reasons)
            call.output.tell("  recorded", f"as {done.record}, and {len(refused)} attempts by others")
            if done.outcome != done.expected:
                break
    records = sum(step.record is not None for step in told.steps)
    end = "The story is told" if told.ok else "The story broke off"
    call.output.note(f"\n{end}: {len(told.steps)} attempts, {records} records. 'squidbot audit tail' shows them.")
    return told


def _sides(door: "AgentMCPService", scene: Scene, arguments: Mapping[str, Any]) -> tuple[list[str], dict[str, str]]:
    """The roles that may do it, and for each that must not be able to, why."""
    mapper = door.permissions.mapper
    decisions = {role: mapper.decide(role, *scene.tool, arguments) for role in mapper.roles}
    return [role for role, decision in decisions.items() if decision.allowed], {
        role: decision.reason.replace(f"role {role!r}", "the role")
        for role, decision in decisions.items()
        if not decision.allowed
    }


def _tell_refusals(call: Invocation, steps: list[Step], reasons: Mapping[str, str]) -> None:
    """Whoever was refused, by the reason; and whoever was not, which must not be."""
    for reason in dict.fromkeys(reasons.values()):
        roles = [step.role for step in steps if step.outcome == step.expected and reasons[step.role] == reason]
        call.output.tell("  refused", f"to {', '.join(roles) or 'nobody'}: {reason}")
    for step in steps:
        if step.outcome != step.expected:
            call.output.tell("  failed", f"{step.role} was not refused ({step.outcome})")


async def _refused(door: "AgentMCPService", scene: Scene, role: str, arguments: Mapping[str, Any]) -> Step:
    caller = Caller(role, member="story", origin="cli")
    try:
        result = await door.execute_tool(caller, *scene.tool, arguments)
        return Step(scene.step, role, str(scene.tool), outcome_of(result), "refused", result.record)
    except ToolNotPermitted as error:
        return Step(scene.step, role, str(scene.tool), "refused", "refused", error.record)


async def _done(door: "AgentMCPService", scene: Scene, facts: Facts, arguments: Mapping[str, Any]) -> tuple[Step, str]:
    caller = Caller(scene.role, member="story", origin="cli")
    try:
        result = await door.execute_tool(caller, *scene.tool, arguments)
    except SquidbotError as error:
        return Step(scene.step, scene.role, str(scene.tool), "refused", "ok", error.record), str(error)
    outcome: str = outcome_of(result)
    words = _first_line(result)
    if outcome == "ok":
        facts |= scene.learn(result.structured or {})
        missing = await _missing(door, scene, facts)
        if missing is not None:
            outcome, words = "no effect", missing
    return Step(scene.step, scene.role, str(scene.tool), outcome, "ok", result.record), words


async def _missing(door: "AgentMCPService", scene: Scene, facts: Facts) -> str | None:
    """What the world should now look like and does not, as the person at the machine sees it; None if it does."""
    if scene.seen is None:
        return None
    tool, arguments, expected = scene.seen(facts)
    answer = await door.execute_tool(Caller("operator", member="story", origin="cli"), *tool, arguments)
    found = answer.structured or {}
    wrong = [name for name, value in expected.items() if not _holds(found.get(name), value)]
    return f"{tool} does not show it: {', '.join(wrong)}" if wrong else None


def _holds(found: Any, expected: Any) -> bool:
    return expected in str(found) if isinstance(expected, str) and not isinstance(found, str) else found == expected


def _first_line(result: ToolResult) -> str:
    return next((line.strip() for line in result.text.splitlines() if line.strip()), "done")
