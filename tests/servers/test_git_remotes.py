"""Pushing, pulling and merging: what goes through, what is refused, and that a refusal changes nothing."""

import socket
from pathlib import Path

import anyio
import pytest

from tests.servers.gitting import (
    clone_of,
    commit,
    done,
    everything,
    executable,
    git,
    made,
    refused,
    remote_of,
    served,
    told,
)

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F-01")]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = made(tmp_path / "shop")
    commit(folder, {"cart.py": "one\n", "menu.py": "soup\n"}, "Begin")
    return folder


@pytest.fixture
def bare(shop: Path) -> Path:
    """The remote of the shop."""
    return remote_of(shop)


async def test_a_new_branch_gets_its_upstream_with_the_first_push(shop: Path, bare: Path) -> None:
    """The next pull should know where to look."""
    git(shop, "checkout", "-q", "-b", "feature/tea")
    tea = commit(shop, {"tea": "green\n"})
    async with served(shop) as client:
        pushed = await done(client, "git_push")
        assert (pushed["outcome"], pushed["remote"], pushed["branch"]) == ("new", "origin", "feature/tea")
        assert (pushed["commit"], pushed["upstream_set"]) == (tea, True)
        again = await done(client, "git_push")
        assert (again["outcome"], again["upstream_set"]) == ("up to date", False)
        assert (await done(client, "git_push", branch="main", remote="origin"))["outcome"] == "up to date"
    assert git(shop, "rev-parse", "--abbrev-ref", "feature/tea@{upstream}") == "origin/feature/tea"
    assert git(bare, "rev-parse", "feature/tea") == tea


async def test_a_push_over_other_peoples_commits_is_refused_and_never_forced(shop: Path, bare: Path) -> None:
    """Their work would be gone."""
    theirs = commit(clone_of(bare, "bob"), {"theirs": "x\n"})
    git(bare.with_name("bob"), "push", "-q")
    commit(shop, {"mine": "x\n"})
    git(shop, "config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
    async with served(shop) as client:
        assert "git_pull first" in await refused(client, "git_push")
        assert git(bare, "rev-parse", "main") == theirs
        pulled = await done(client, "git_pull")
        assert (pulled["outcome"], [one["path"] for one in pulled["files"]]) == ("merged", ["theirs"])
        assert (await done(client, "git_push"))["outcome"] == "updated"
    assert git(bare, "log", "-1", "--format=%s", "main") == "Merge 'origin/main' into main"
    assert git(bare, "merge-base", theirs, "main") == theirs


async def test_a_protected_branch_is_refused_in_the_words_of_the_remote(shop: Path, bare: Path) -> None:
    """The remote knows its rules, and how to go on."""
    executable(
        bare / "hooks" / "pre-receive",
        "echo 'main is protected: open a pull request' >&2",
        "grep -q main && exit 1",
        ":",
    )
    before = git(bare, "rev-parse", "main")
    commit(shop, {"cart.py": "two\n"})
    async with served(shop) as client:
        words = await refused(client, "git_push")
        assert "'origin' refuses this push to 'main': pre-receive hook declined" in words
        assert "it said: main is protected: open a pull request" in words
        assert "push another branch" in words
        assert git(bare, "rev-parse", "main") == before
        await done(client, "git_checkout", branch="feature", create=True)
        pushed = await done(client, "git_push")
        assert pushed["messages"] == ["main is protected: open a pull request"]


async def test_what_cannot_be_pushed_is_refused_with_what_can(shop: Path) -> None:
    """Each refusal names the way on."""
    async with served(shop) as client:
        assert "this repository has no remote" in await refused(client, "git_push")
        remote_of(shop)
        assert "there is no branch 'none' here: 'main' can be pushed" in await refused(
            client, "git_push", branch="none"
        )
        assert "there is no branch 'main~0' here" in await refused(client, "git_push", branch="main~0")
        assert "there is no remote 'up': set 'remote' to 'origin'" in await refused(client, "git_push", remote="up")
        git(shop, "remote", "rename", "origin", "a")
        git(shop, "remote", "add", "b", "nowhere")
        git(shop, "config", "--unset", "branch.main.remote")
        assert "which remote?: set 'remote' to 'a', 'b'" in await refused(client, "git_push")
        git(shop, "remote", "remove", "b")
        assert (await done(client, "git_push"))["remote"] == "a"


async def test_a_pull_goes_forward_without_a_merge_where_it_can(shop: Path, bare: Path) -> None:
    """Work that is not committed stays, as long as it is not in the way."""
    bob = clone_of(bare, "bob")
    theirs = commit(bob, {"cart.py": "two\n"})
    git(bob, "push", "-q")
    (shop / "menu.py").write_text("tea\n")
    async with served(shop) as client:
        pulled = await done(client, "git_pull")
        assert (pulled["outcome"], pulled["commit"]) == ("fast-forward", theirs)
        assert (shop / "menu.py").read_text() == "tea\n"
        commit(bob, {"menu.py": "coffee\n"})
        git(bob, "push", "-q")
        words = await refused(client, "git_pull")
        assert "would be lost" in words
        assert "menu.py" in words
    assert (shop / "menu.py").read_text() == "tea\n"
    assert git(shop, "rev-parse", "HEAD") == theirs


async def test_a_pull_takes_another_branch_and_says_if_there_is_none(shop: Path, bare: Path) -> None:
    """The upstream is a default, not a must."""
    bob = clone_of(bare, "bob")
    git(bob, "checkout", "-q", "-b", "theirs")
    commit(bob, {"new": "x\n"})
    git(bob, "push", "-q", "origin", "theirs")
    async with served(shop) as client:
        assert "has no branch 'none'" in await refused(client, "git_pull", branch="none")
        pulled = await done(client, "git_pull", branch="theirs", remote="origin")
        assert (pulled["source"], pulled["outcome"]) == ("origin/theirs", "fast-forward")
        await done(client, "git_checkout", branch="solo", create=True)
        assert "has no branch 'solo'" in await refused(client, "git_pull")


async def test_a_pull_into_an_empty_repository_fills_it(shop: Path, bare: Path, tmp_path: Path) -> None:
    """The first thing that many do."""
    empty = made(tmp_path / "empty")
    git(empty, "remote", "add", "origin", str(bare))
    async with served(empty) as client:
        pulled = await done(client, "git_pull")
    assert (pulled["before"], pulled["outcome"]) == (None, "fast-forward")
    assert everything(empty) == everything(shop)


async def test_a_pull_writes_only_where_remote_branches_belong(shop: Path, bare: Path) -> None:
    """A mapping in the configuration could overwrite local branches."""
    kept = commit(shop, {"kept": "x\n"})
    git(shop, "branch", "theirs")
    bob = clone_of(bare, "bob")
    git(bob, "push", "-q", "origin", "main:theirs")
    git(shop, "config", "remote.origin.fetch", "+refs/heads/*:refs/heads/*")
    async with served(shop) as client:
        await done(client, "git_pull", branch="theirs")
    assert git(shop, "rev-parse", "theirs") == kept


@pytest.mark.parametrize("tool", ["git_merge", "git_pull"])
async def test_a_conflict_names_the_files_and_leaves_everything_as_it_was(shop: Path, bare: Path, tool: str) -> None:
    """Half a merge in a shared working tree stops everybody."""
    bob = clone_of(bare, "bob")
    commit(bob, {"cart.py": "theirs\n", "menu.py": "theirs\n", "new": "x\n"})
    git(bob, "push", "-q")
    mine = commit(shop, {"cart.py": "mine\n", "menu.py": "mine\n"})
    (shop / "untracked").touch()
    git(shop, "fetch", "-q")
    before = everything(shop)
    async with served(shop) as client:
        words = await refused(client, tool, **({"source": "origin/main"} if tool == "git_merge" else {}))
        assert "'origin/main' conflicts with the current branch in 'cart.py', 'menu.py'" in words
        assert "nothing has changed" in words
        assert (await done(client, "git_status"))["under_way"] is None
    assert everything(shop) == before
    assert git(shop, "rev-parse", "HEAD") == mine
    assert git(shop, "status", "--porcelain") == "?? untracked"


async def test_a_merge_is_fast_or_makes_a_commit_as_asked(shop: Path) -> None:
    """Some teams want to see every merge."""
    git(shop, "checkout", "-q", "-b", "feature")
    commit(shop, {"tea": "green\n"})
    git(shop, "checkout", "-q", "main")
    async with served(shop) as client:
        merged = await done(client, "git_merge", source="feature", fast_forward=False, message="-n Bring tea")
        assert (merged["outcome"], [one["path"] for one in merged["files"]]) == ("merged", ["tea"])
        assert await told(client, "git_merge", source="feature") == (
            f"'main' has all of 'feature', now at {merged['commit'][:12]}"
        )
    assert git(shop, "log", "-1", "--format=%s %p").startswith("-n Bring tea ")


async def test_a_merge_that_needs_a_commit_wants_a_clean_tree_and_an_identity(shop: Path) -> None:
    """What is not committed could not be put back if the merge has to be aborted."""
    git(shop, "checkout", "-q", "-b", "feature")
    commit(shop, {"tea": "green\n"})
    git(shop, "checkout", "-q", "main")
    commit(shop, {"coffee": "black\n"})
    (shop / "cart.py").write_text("mine\n")
    async with served(shop) as client:
        assert "uncommitted changes in 'cart.py'" in await refused(client, "git_merge", source="feature")
        git(shop, "checkout", "-q", "--", "cart.py")
        git(shop, "config", "--unset", "user.email")
        assert "nobody is known to be the author" in await refused(client, "git_merge", source="feature")
        git(shop, "config", "user.email", "ada@example.org")
        (shop / "tea").write_text("untracked\n")
        assert "would be lost" in await refused(client, "git_merge", source="feature")
    assert (shop / "tea").read_text() == "untracked\n"


async def test_a_remote_that_is_away_is_said_to_be_without_its_password(shop: Path) -> None:
    """The usual failure of a network, and the usual place for a leak."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    git(shop, "remote", "add", "origin", f"http://ada:secret@127.0.0.1:{port}/shop.git")
    async with served(shop) as client:
        for tool in ("git_push", "git_pull"):
            words = await refused(client, tool)
            assert "the remote cannot be reached" in words
            assert "secret" not in words
        git(shop, "remote", "set-url", "origin", "../nowhere")
        assert "the remote cannot be reached" in await refused(client, "git_pull")


async def test_a_remote_that_wants_a_password_is_not_waited_for(
    shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody sits at a terminal, and no window may open on the operator's screen."""
    asked = tmp_path / "asked"
    monkeypatch.setenv("GIT_ASKPASS", str(executable(tmp_path / "ask", f"touch {asked}")))
    monkeypatch.setenv("SSH_ASKPASS", str(tmp_path / "ask"))
    git(shop, "config", "core.askPass", str(tmp_path / "ask"))

    async def refuse(stream: anyio.abc.SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(
                b'HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n'
            )

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        tasks.start_soon(listener.serve, refuse)
        git(shop, "remote", "add", "origin", f"http://127.0.0.1:{port}/shop.git")
        async with served(shop) as client:
            assert "does not let this server in" in await refused(client, "git_pull")
        tasks.cancel_scope.cancel()
    assert not asked.exists()
