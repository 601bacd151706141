"""The world on disk: seeded once, kept through a kill -9, open to one process, and protected where GitHub protects."""

import json
import signal
import stat
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import httpx2
import pytest

from squidbot.practice import clock
from squidbot.practice.app import build_app
from squidbot.practice.git import GitFailed, git
from squidbot.practice.merging import Conflict, merge
from squidbot.practice.people import BOT, PEOPLE
from squidbot.practice.repository import is_reference
from squidbot.practice.world import World, WorldInUse
from tests.practice.conftest import Asking, Practice, refused_push, running

pytestmark = pytest.mark.requirement("F-05")

PROGRAM = [sys.executable, "-m", "squidbot.practice"]


def started(folder: Path, *arguments: str) -> tuple[subprocess.Popen[str], str]:
    """The program, and the address that it prints once it answers."""
    process = subprocess.Popen(
        [*PROGRAM, "--dir", str(folder), "--port", "0", *arguments], stdout=-1, stderr=-1, text=True
    )
    assert process.stdout
    line = process.stdout.readline()
    assert line.startswith("practice: http://127.0.0.1:"), process.communicate(timeout=10)
    return process, line.split()[-1]


def ended(process: subprocess.Popen[str], number: int) -> tuple[int, str]:
    process.send_signal(number)
    _, said = process.communicate(timeout=20)
    return process.returncode, said


def issue_titles(url: str) -> list[str]:
    headers = {"Authorization": f"token {BOT.token}"}
    answer = httpx2.get(f"{url}/api/v3/repos/tidewater/shop/issues", headers=headers)
    return [issue["title"] for issue in answer.raise_for_status().json()]


def test_what_was_done_outlives_a_kill(tmp_path: Path) -> None:
    """A world that forgets cannot be practised in."""
    process, url = started(tmp_path / "world")
    headers = {"Authorization": f"Bearer {BOT.token}"}
    made = httpx2.post(f"{url}/github/repos/tidewater/shop/issues", json={"title": "Kept"}, headers=headers)
    assert made.status_code == 201
    merged = httpx2.put(f"{url}/github/repos/tidewater/shop/pulls/7/merge", json={}, headers=headers)
    assert ended(process, signal.SIGKILL)[0] == -signal.SIGKILL
    process, url = started(tmp_path / "world")
    assert "Kept" in issue_titles(url)
    pull = httpx2.get(f"{url}/github/repos/tidewater/shop/pulls/7", headers=headers).json()
    assert (pull["merged"], pull["merge_commit_sha"]) == (True, merged.json()["sha"])
    assert ended(process, signal.SIGTERM) == (0, "")
    process, url = started(tmp_path / "world", "--reset")
    assert "Kept" not in issue_titles(url)
    assert ended(process, signal.SIGINT) == (0, "")


def test_practice_json_tells_a_client_everything(practice: Practice) -> None:
    """The settings of the bundled servers are filled from it; its tokens are for the owner's eyes."""
    path = practice.folder / "practice.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    told = json.loads(path.read_text())
    assert told["web_url"] == practice.url
    assert told["github_api_url"] == f"{practice.url}/github"
    assert told["github_token"] == told["jira_api_token"] == told["tokens"][BOT.login]
    assert git(Path(told["repository"]), "remote", "get-url", "origin").decode().strip() == told["bare_repository"]
    assert {person["role"] for person in told["people"].values()} == {person.role for person in PEOPLE}


def test_two_processes_never_share_a_world(tmp_path: Path) -> None:
    """Each would undo what the other did."""
    with World(tmp_path), pytest.raises(WorldInUse, match="already running: use that one"), World(tmp_path):
        pass
    with World(tmp_path) as world:
        assert world.is_open
        command = [*PROGRAM, "--dir", str(tmp_path), "--port", "0"]
        ended_at_once = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
        assert ended_at_once.returncode == 1
        assert "already running" in ended_at_once.stderr
        assert "Traceback" not in ended_at_once.stderr
    assert not world.is_open


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--port", "x"), 2, "'x' is no port"),
        ((), 2, "--dir"),
        (("--dir", "/dev/null/x", "--port", "0"), 1, "cannot use"),
    ],
)
def test_what_cannot_start_says_why(arguments: tuple[str, ...], code: int, said: str) -> None:
    """Whoever mistypes must not read a traceback."""
    run = subprocess.run([*PROGRAM, *arguments], capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == code
    assert said in run.stderr
    assert "Traceback" not in run.stderr


def test_a_port_that_is_taken_is_named(practice: Practice, tmp_path: Path) -> None:
    """The default port is often taken by the world that already runs."""
    port = practice.url.rpartition(":")[2]
    command = [*PROGRAM, "--dir", str(tmp_path / "other"), "--port", port]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (run.returncode, run.stderr.strip()) == (1, f"practice: cannot use port {port}: Address already in use")


def test_a_world_that_was_left_half_made_is_made_again(tmp_path: Path) -> None:
    """A kill -9 in the first second must not leave a folder that never works."""
    (tmp_path / "shop.git").mkdir()
    (tmp_path / "shop").mkdir()
    (tmp_path / "world.sqlite").touch()
    with World(tmp_path) as world:
        assert len(world.store.all("ticket")) == 19
        assert git(world.clone, "status", "--porcelain") == b""


@pytest.mark.parametrize("reset", [(), ("--reset",)])
def test_somebody_elses_folder_of_the_same_name_is_never_thrown_away(tmp_path: Path, reset: tuple[str, ...]) -> None:
    """Many have a folder 'shop' of their own, and may name the one that it is in."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "work").write_text("of years")
    command = [*PROGRAM, "--dir", str(tmp_path), "--port", "0", *reset]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 1
    assert f"cannot use the folder '{tmp_path / 'shop'}': it is no practice world's" in run.stderr
    assert (tmp_path / "shop" / "work").read_text() == "of years"
    assert [path.name for path in tmp_path.iterdir()] == ["shop"]


@pytest.mark.parametrize("carried_out", [True, False])
def test_a_merge_that_was_cut_off_is_settled_by_what_git_says(tmp_path: Path, *, carried_out: bool) -> None:
    """Git and the database cannot change in one step: the intention is kept, and git is the judge of it."""
    with World(tmp_path) as world:
        issue = world.store.get("issue", 7)
        assert issue
        base, head = issue["pull"]["base_sha"], issue["pull"]["head_sha"]
        sha = merge(world.repository, base=base, head=head, way="squash", message="Cut off", by=BOT)
        issue["pull"]["merging"] = {"sha": sha, "by": "tomas", "at": clock.now()}
        world.store.put("issue", issue)
        if carried_out:
            world.repository.move("refs/heads/main", sha, base)
    with running(tmp_path) as practice:
        headers = {"Authorization": f"Bearer {BOT.token}"}
        pull = httpx2.get(f"{practice.url}/github/repos/tidewater/shop/pulls/7", headers=headers).json()
    assert (pull["merged"], pull["state"]) == ((True, "closed") if carried_out else (False, "open"))
    assert (pull["merged_by"] or {}).get("login") == ("tomas" if carried_out else None)


def test_nobody_pushes_to_the_protected_branch(practice: Practice, shop: Asking) -> None:
    """The rule is the repository's own, so that no client can forget it; the forge's merge goes through."""
    practice.push("mine", {"mine.txt": "mine\n"})
    for arguments in (("origin", "mine:main"), ("--force", "origin", "mine:main"), ("origin", ":main")):
        said = refused_push(practice.clone, *arguments)
        assert "The branch 'main' is protected" in said
        assert "open a pull request" in said
    assert "belongs to a pull request" in refused_push(practice.clone, "origin", "mine:refs/pull/7/head")
    made = shop("POST", "/pulls", json={"title": "Mine", "head": "mine", "base": "main"}).json()
    assert practice.git("rev-parse", f"refs/pull/{made['number']}/head") == made["head"]["sha"]
    assert shop("PUT", f"/pulls/{made['number']}/merge", json={}).status_code == 200
    assert practice.git("show", "main:mine.txt") == "mine"


def test_hooks_of_whoever_pushes_do_not_lift_the_protection(
    practice: Practice, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hooks folder in somebody's own settings would take the place of the repository's."""
    (home / ".gitconfig").write_text(f"[core]\n\thooksPath = {home}\n")
    practice.push("mine", {"mine.txt": "mine\n"})
    assert "protected" in refused_push(practice.clone, "origin", "mine:main")


def test_the_seed_is_the_same_in_every_world_but_for_its_dates(tmp_path: Path) -> None:
    """Stories and tests name its numbers; dates count from the first start."""
    with World(tmp_path) as world:
        sprint = world.store.get("sprint", 2)
        assert sprint
        start, end = (datetime.fromisoformat(sprint[name]) for name in ("start", "end"))
        assert start < datetime.now(UTC) < end
        first = world.repository.log("main")[-1]
        assert (datetime.now(UTC) - datetime.fromisoformat(first.author.date)).days in {39, 40}
        assert [issue["id"] for issue in world.store.all("issue")] == [1, 2, 3, 4, 5, 6, 7]
    run = subprocess.run([sys.executable, "-m", "unittest"], cwd=world.clone, capture_output=True, check=False)
    assert run.returncode == 0, run.stderr


def test_a_rebase_that_conflicts_leaves_nothing_behind(tmp_path: Path) -> None:
    """Worktrees that stay would pile up in the repository."""
    with World(tmp_path) as world:
        repository = world.repository
        base, head = repository.branch("main"), repository.branch("fix/cart-quantity")
        assert base
        assert head
        with pytest.raises(Conflict, match=r"shop/cart\.py"):
            merge(repository, base=base, head=head, way="rebase", message="", by=BOT)
        assert git(repository.path, "worktree", "list").decode().count("\n") == 1


@pytest.mark.parametrize("name", ["", "-x", "a..b", "a b", ".a", "a/.b", "a.lock", "a/", "a//b", "a\nb", "@", "a@{1}"])
def test_no_name_that_git_would_take_for_something_else_is_a_branch(tmp_path: Path, name: str) -> None:
    """Names come from requests and end on git's command line."""
    assert not is_reference(name)


def test_git_that_fails_or_is_missing_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of all first starts on a new machine."""
    with pytest.raises(GitFailed, match="git rev-parse failed: fatal"):
        git(tmp_path, "rev-parse", "HEAD")
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitFailed, match="not installed"), World(tmp_path / "world"):
        pass


@pytest.mark.anyio
async def test_the_application_opens_its_world_with_itself(tmp_path: Path) -> None:
    """Whoever hosts the application elsewhere need not know that there is something to open."""
    world = World(tmp_path)
    app = build_app(world)
    seen = [world.is_open]
    async with app.router.lifespan_context(app):
        seen.append(world.is_open)
    seen.append(world.is_open)
    with world:
        async with app.router.lifespan_context(app):
            seen.append(world.is_open)
        seen.append(world.is_open)
    assert seen == [False, True, False, True, True]


def test_the_front_page_says_what_this_is(practice: Practice, shop: Asking) -> None:
    """Somebody who stumbles over the port must see that nothing here is real."""
    shop("POST", "/issues", json={"title": "<script>alert(1)</script>"})
    page = httpx2.get(practice.url)
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for words in ("for practice", "may approve even the pull requests", "SHOP-8", "Add discount codes", "color-scheme"):
        assert words in page.text
    assert "<script>" not in page.text
    assert "&lt;script&gt;" in page.text
    assert "http" not in page.text.replace(practice.url, "")
    for path, anchor in {"/tidewater/shop/pull/7": "issue-7", "/jira/browse/SHOP-8": "SHOP-8"}.items():
        assert httpx2.get(practice.url + path).headers["location"] == f"/#{anchor}"
    assert httpx2.get(practice.url, headers={"Host": "evil.example"}).status_code == 400
