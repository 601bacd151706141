"""`squidbot practice`: a local forge and tracker to try everything with, and the story that shows it."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from squidbot.cli.errors import CommandError
from squidbot.cli.exits import DONE, FAILED
from squidbot.cli.grammar import Group
from squidbot.cli.invocation import Invocation

if TYPE_CHECKING:
    from squidbot.cli.story import Told

_PORT = 8766


@click.group(cls=Group, example="squidbot practice story")
def practice() -> None:
    """A local forge and tracker to try everything with, and a story."""


@practice.command("start", example="squidbot practice start --reset")
@click.option("--port", type=click.IntRange(0, 65_535), default=_PORT, show_default=True, help="0 for any.")
@click.option(
    "--dir", "folder", type=click.Path(path_type=Path), help="Where the world is kept; else in the state folder."
)
@click.option("--reset", is_flag=True, help="Throw away what is in the world, and begin anew.")
@click.pass_obj
def start(call: Invocation, *, port: int, folder: Path | None, reset: bool) -> None:
    """Serve the practice world on this machine until interrupted."""
    from squidbot.cli.practice_world import practice_world

    ended = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: ended.set())
    with _told(port), practice_world(folder or _home(), port=port, reset=reset, join=False) as directions:
        if call.json:
            call.output.document(directions)
        else:
            call.output.heading("The practice world", beside=directions["web_url"])
            for name in ("github_api_url", "jira_url", "repository"):
                call.output.write(f"  {name:<16} {directions[name]}")
            call.output.note("It is for practice: nothing in it is real. Ctrl-C ends it.")
        ended.wait()


@practice.command("story", example="squidbot practice story")
@click.option("--live", is_flag=True, help="On real accounts: the servers of your settings, with your tokens.")
@click.option("--repo", metavar="OWNER/NAME", help="With --live: the repository, which 'git' has a clone of.")
@click.option("--project", metavar="KEY", help="With --live: the Jira project.")
@click.pass_obj
def story(call: Invocation, *, live: bool, repo: str | None, project: str | None) -> int:
    """Play a ticket's whole way, from its opening to done, each step by a role that may, and refused to one that may not."""
    from squidbot.cli.story import Stage, play

    if live != (repo is not None and project is not None):
        raise click.UsageError(
            "--live needs --repo and --project, which mean nothing without it.", click.get_current_context()
        )
    if repo is not None and project is not None:
        told = call.run(lambda: play(call, Stage(repository=repo, project=project, live=True)))
    else:
        told = _practised(call)
    if call.json:
        call.output.document(told.document())
    return DONE if told.ok else FAILED


def _practised(call: Invocation) -> "Told":
    """Play it in the practice world, with settings of its own over the same records."""
    from squidbot.cli.practice_world import practice_settings, practice_world
    from squidbot.cli.story import Stage, play
    from squidbot.config.load import find_settings
    from squidbot.config.schema import Settings

    with _told(0), practice_world(_home()) as directions:
        ours = call.settings if find_settings(call.config) else Settings()
        call.container.settings.override(practice_settings(ours, directions, story=True))
        stage = Stage(repository=directions["github_repository"], project=directions["jira_project"])
        return call.run(lambda: play(call, stage))


def _home() -> Path:
    from squidbot.config.state import state_folder

    return state_folder() / "practice"


@contextmanager
def _told(port: int) -> Iterator[None]:
    """Turn what keeps the world from starting into words."""
    from squidbot.practice.git import GitFailed
    from squidbot.practice.world import WorldInUse

    try:
        yield
    except (WorldInUse, GitFailed) as error:
        raise CommandError(str(error), code="practice", exit_code=FAILED) from error
    except OSError as error:
        if error.filename:
            what = f"the folder {error.filename!r}: {error.strerror}"
        else:
            what = f"port {port}: {os.strerror(error.errno or 0)}"
        message = f"the practice world cannot use {what}"
        raise CommandError(message, code="practice", exit_code=FAILED) from error
