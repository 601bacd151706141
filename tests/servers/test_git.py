"""The git server as a client meets it: looking, branching, committing."""

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import jsonschema
import pytest
from mcp import Client, StdioServerParameters

from tests.servers.gitting import commit, done, git, made, refused, remote_of, served, told

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F-01")]

COMMAND = [sys.executable, "-P", "-m", "squidbot.servers.git"]
TOOLS = {
    "git_status",
    "git_diff",
    "git_log",
    "git_branch",
    "git_checkout",
    "git_commit",
    "git_push",
    "git_pull",
    "git_merge",
}


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository with one commit."""
    folder = made(tmp_path / "shop")
    commit(folder, {"cart.py": "one\ntwo\nthree\n", "docs/plan.md": "plan\n"}, "Begin")
    return folder


@asynccontextmanager
async def over_stdio(folder: Path, era: str) -> AsyncIterator[Client]:
    server = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], "--repository", str(folder)], env=dict(os.environ)
    )
    async with Client(server, mode=era, read_timeout_seconds=30) as client:
        yield client


@asynccontextmanager
async def over_http(folder: Path, era: str) -> AsyncIterator[Client]:
    command = [*COMMAND, "--repository", str(folder), "--http", "0"]
    async with await anyio.open_process(command, stdout=None) as process:
        assert process.stderr
        with anyio.fail_after(30):
            announced = await process.stderr.receive()
        async with Client(announced.decode().split()[-1], mode=era, read_timeout_seconds=30) as client:
            yield client
        process.terminate()
        with anyio.fail_after(10):
            assert await process.wait() == 0


@pytest.mark.parametrize(("connect", "era"), [(over_stdio, "auto"), (over_stdio, "legacy"), (over_http, "auto")])
async def test_a_day_with_git_goes_the_same_over_every_transport_in_both_eras(
    shop: Path, connect: Any, era: str
) -> None:
    """Whatever client comes, the nine tools do the whole job."""
    bare = remote_of(shop)
    async with connect(shop, era) as client:
        assert {tool.name for tool in (await client.list_tools()).tools} == TOOLS
        assert (await done(client, "git_pull"))["outcome"] == "up to date"
        await done(client, "git_branch", action="create", name="feature")
        assert (await done(client, "git_checkout", branch="feature"))["previous"] == "main"
        (shop / "cart.py").write_text("one\ntwo\nfour\n")
        assert (await done(client, "git_status"))["unstaged"][0]["path"] == "cart.py"
        assert "-three\n+four\n" in (await done(client, "git_diff"))["diff"]
        made_commit = (await done(client, "git_commit", message="Count on"))["commit"]
        assert (await done(client, "git_push"))["outcome"] == "new"
        await done(client, "git_checkout", branch="main")
        assert (await done(client, "git_merge", source="feature"))["outcome"] == "fast-forward"
        assert (await done(client, "git_log", limit=1))["commits"][0]["id"] == made_commit
        assert (await done(client, "git_push"))["outcome"] == "updated"
    assert git(bare, "rev-parse", "main", "feature") == f"{made_commit}\n{made_commit}"


async def test_every_tool_says_what_it_takes_and_gives_and_whether_it_changes_anything(shop: Path) -> None:
    """Clients decide by these whether to ask a person first."""
    async with served(shop) as client:
        assert client.instructions
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    reading = {name for name, tool in tools.items() if tool.annotations and tool.annotations.read_only_hint}
    outward = {name for name, tool in tools.items() if tool.annotations and tool.annotations.open_world_hint}
    assert reading == {"git_status", "git_diff", "git_log"}
    assert outward == {"git_push", "git_pull"}
    for tool in tools.values():
        assert tool.description
        assert tool.input_schema["additionalProperties"] is False
        assert "repository" in tool.input_schema["properties"]
        assert tool.annotations
        assert not tool.annotations.destructive_hint
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema or {"type": "missing"})


async def test_every_answer_fits_the_schema_that_was_announced(shop: Path) -> None:
    """A client may refuse an answer that breaks its promise."""
    remote_of(shop)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("git_status", {}),
        ("git_diff", {"base": "main"}),
        ("git_log", {}),
        ("git_branch", {"remotes": True}),
        ("git_checkout", {"branch": "x", "create": True}),
        ("git_commit", {"message": "Add"}),
        ("git_push", {}),
        ("git_pull", {}),
        ("git_merge", {"source": "main"}),
    ]
    (shop / "new").write_text("new\n")
    async with served(shop) as client:
        schemas = {tool.name: tool.output_schema for tool in (await client.list_tools()).tools}
        for name, arguments in calls:
            jsonschema.validate(await done(client, name, **arguments), schemas[name] or {"type": "missing"})


async def test_the_state_of_a_repository_is_told_by_kind(shop: Path) -> None:
    """What is staged, what is not, and what is new are three different things to do next."""
    remote_of(shop)
    git(shop, "mv", "docs/plan.md", "docs/goal.md")
    (shop / "cart.py").write_text("less\n")
    (shop / "new\nline").touch()
    async with served(shop) as client:
        found = await done(client, "git_status")
        words = await told(client, "git_status")
    assert (found["branch"], found["upstream"], found["ahead"], found["behind"]) == ("main", "origin/main", 0, 0)
    assert [(one["path"], one["change"], one["old_path"]) for one in found["staged"]] == [
        ("docs/goal.md", "renamed", "docs/plan.md")
    ]
    assert [(one["path"], one["change"]) for one in found["unstaged"]] == [("cart.py", "modified")]
    assert found["untracked"] == ["new\nline"]
    assert (found["clean"], found["conflicts"], found["under_way"]) == (False, [], None)
    assert words.splitlines() == [
        "on branch main",
        "upstream origin/main: 0 ahead, 0 behind",
        "staged: renamed docs/goal.md from docs/plan.md",
        "not staged: modified cart.py",
        "untracked: 'new\\nline'",
    ]


async def test_before_the_first_commit_everything_answers_in_words(tmp_path: Path) -> None:
    """An empty repository is how every project starts."""
    folder = made(tmp_path / "new")
    git(folder, "remote", "add", "origin", str(tmp_path / "none"))
    async with served(folder) as client:
        assert (await done(client, "git_status"))["commit"] is None
        assert "no commits yet" in await told(client, "git_status")
        assert await told(client, "git_log") == "no commits yet"
        assert await told(client, "git_branch") == "no branches: there is no commit yet"
        assert (await done(client, "git_diff", staged=True))["files"] == []
        assert "there is no commit yet" in await refused(client, "git_branch", action="create", name="x")
        assert "no commit yet" in await refused(client, "git_push")
        assert "this repository has no commit yet" in await refused(client, "git_merge", source="x")
        assert "is the current branch already" in await refused(client, "git_checkout", branch="main")
        assert "nothing to commit" in await refused(client, "git_commit", message="Empty")
        assert (await done(client, "git_checkout", branch="trunk", create=True))["branch"] == "trunk"
        (folder / "a").write_text("a\n")
        first = await done(client, "git_commit", message="First", paths=["a"])
        assert (first["branch"], [one["path"] for one in first["files"]]) == ("trunk", ["a"])


async def test_a_detached_head_is_told_and_what_needs_a_branch_is_refused(shop: Path) -> None:
    """A commit without a branch is soon lost, so whoever makes one should know."""
    first = git(shop, "rev-parse", "HEAD")
    commit(shop, {"cart.py": "two\n"}, "Second")
    remote_of(shop)
    async with served(shop) as client:
        there = await done(client, "git_checkout", branch="main~1")
        assert (there["branch"], there["commit"], there["previous"]) == (None, first, "main")
        assert f"no branch checked out, at {first}" in await told(client, "git_status")
        assert (await done(client, "git_branch"))["current"] is None
        for tool, arguments in (("git_push", {}), ("git_pull", {}), ("git_merge", {"source": "main"})):
            assert "no branch is checked out (detached head)" in await refused(client, tool, **arguments)
        (shop / "lost").touch()
        assert "to no branch" in await told(client, "git_commit", message="Lost?")
        kept = await done(client, "git_checkout", branch="kept", create=True)
    assert git(shop, "rev-parse", "kept") == kept["commit"]


async def test_differences_are_shown_between_any_two_states(shop: Path) -> None:
    """Reviews compare branches, authors compare files."""
    git(shop, "checkout", "-q", "-b", "feature")
    commit(shop, {"cart.py": "one\n2\nthree\n"}, "Number")
    git(shop, "checkout", "-q", "main")
    commit(shop, {"other": "other\n"}, "Elsewhere")
    (shop / "cart.py").write_text("1\ntwo\nthree\n")
    git(shop, "add", "cart.py")
    async with served(shop) as client:
        assert "no differences" in await told(client, "git_diff")
        staged = await done(client, "git_diff", staged=True, context=0)
        assert "@@ -1 +1 @@" in staged["diff"]
        assert (staged["added"], staged["deleted"], staged["truncated"]) == (1, 1, False)
        both = await done(client, "git_diff", base="main", target="feature", summary=True)
        assert {one["path"]: one["change"] for one in both["files"]} == {"cart.py": "modified", "other": "deleted"}
        assert both["diff"] == ""
        branch = await done(client, "git_diff", base="main", target="feature", since_fork=True)
        assert [one["path"] for one in branch["files"]] == ["cart.py"]
        some = await done(client, "git_diff", base="main", target="feature", paths=["other"])
        assert [one["path"] for one in some["files"]] == ["other"]
        assert "'target' needs 'base'" in await refused(client, "git_diff", target="main")
        assert "exclude each other" in await refused(client, "git_diff", base="main", target="main", staged=True)
        assert "'since_fork' needs 'base'" in await refused(client, "git_diff", since_fork=True)
        assert "did you mean 'feature'?" in await refused(client, "git_diff", base="featur")
        git(shop, "checkout", "-q", "--orphan", "apart")
        git(shop, "commit", "-q", "-m", "Apart")
        words = await refused(client, "git_diff", base="main", since_fork=True)
        assert "have no commit in common" in words


async def test_a_huge_diff_is_cut_in_the_middle_with_a_note(shop: Path) -> None:
    """A model cannot read a megabyte, and must not take a part for the whole."""
    (shop / "cart.py").write_text("".join(f"line {number}\n" for number in range(200_000)))
    async with served(shop) as client:
        found = await done(client, "git_diff")
    assert found["truncated"]
    assert len(found["diff"]) < 70_000
    assert f"[… {found['omitted']} bytes are left out here" in found["diff"]
    assert found["diff"].startswith("diff --git a/cart.py b/cart.py\n")
    assert found["diff"].endswith("+line 199999\n")
    assert found["added"] == 200_000


async def test_binary_files_and_names_that_are_no_utf8_are_shown(shop: Path) -> None:
    """Nothing in a repository may be invisible to whoever reviews it."""
    (shop / os.fsdecode(b"caf\xe9")).write_bytes(b"bad \xff text\n")
    (shop / "picture").write_bytes(b"\0\1\2")
    async with served(shop) as client:
        assert (await done(client, "git_status"))["untracked"] == ["caf\\xe9", "picture"]
        made_commit = await done(client, "git_commit", message="Odd things, \u00e9 too")
        assert [(one["path"], one["added"]) for one in made_commit["files"]] == [("caf\\xe9", 1), ("picture", None)]
        diff = (await done(client, "git_diff", base="main~1", target="main"))["diff"]
        assert "+bad \\xff text" in diff
        assert "+++ b/caf\\xe9" in diff
        assert "Binary files /dev/null and b/picture differ" in diff
        assert (await done(client, "git_log"))["commits"][0]["subject"] == "Odd things, \u00e9 too"


async def test_the_history_is_searched_and_paged(shop: Path) -> None:
    """A history is longer than an answer."""
    for number in range(4):
        commit(shop, {"count": f"{number}\n"}, f"Count {number}\n\nBecause of {number}.")
    git(shop, "tag", "v1")
    async with served(shop) as client:
        page = await done(client, "git_log", limit=2)
        assert [one["subject"] for one in page["commits"]] == ["Count 3", "Count 2"]
        assert page["commits"][0]["refs"] == ["HEAD -> main", "tag: v1"]
        assert (page["commits"][0]["author"], page["commits"][0]["body"]) == ("Ada", "Because of 3.")
        assert page["next_skip"] == 2
        rest = await done(client, "git_log", skip=2, limit=10)
        assert [one["subject"] for one in rest["commits"]] == ["Count 1", "Count 0", "Begin"]
        assert (rest["next_skip"], rest["commits"][-1]["parents"]) == (None, [])
        assert "[more: go on with skip 2]" in await told(client, "git_log", limit=2)
        for narrowed in ({"paths": ["docs"]}, {"revision": "v1~4"}, {"text": "bEGin"}):
            assert [one["subject"] for one in (await done(client, "git_log", **narrowed))["commits"]] == ["Begin"]
        assert len((await done(client, "git_log", author="ada@", since="1 day ago"))["commits"]) == 5
        assert await told(client, "git_log", author="nobody") == "no such commits"
        assert await told(client, "git_log", until="1999-01-01") == "no such commits"


async def test_branches_are_listed_and_created(shop: Path) -> None:
    """A branch begins where it is told to, and nothing is switched."""
    first = git(shop, "rev-parse", "HEAD")
    commit(shop, {"cart.py": "2\n"}, "Second")
    remote_of(shop)
    async with served(shop) as client:
        new = await done(client, "git_branch", action="create", name="fix/old", start="main~1")
        assert (new["created"], new["current"], new["branches"][0]["commit"]) == ("fix/old", "main", first)
        listed = {one["name"]: one for one in (await done(client, "git_branch", remotes=True))["branches"]}
        assert set(listed) == {"main", "fix/old", "origin/main"}
        assert (listed["main"]["current"], listed["main"]["upstream"]) == (True, "origin/main")
        assert listed["origin/main"]["remote"]
        assert "already" in await refused(client, "git_branch", action="create", name="main")
        assert "one branch is in the way of the other" in await refused(
            client, "git_branch", action="create", name="main/next"
        )
        words = await refused(client, "git_branch", action="create")
        assert "\n  to create a branch, give its 'name'\n" in words, "what has no name of its own has no empty one"
        assert "for action 'create'" in await refused(client, "git_branch", name="x")
        for name in ("a..b", "a b", "x.lock", "@{-1}", "HEAD"):
            assert "cannot be the name" in await refused(client, "git_branch", action="create", name=name)


async def test_switching_never_loses_uncommitted_work(shop: Path) -> None:
    """What is not committed exists nowhere else."""
    git(shop, "checkout", "-q", "-b", "other")
    commit(shop, {"cart.py": "other\n", "new": "theirs\n"}, "Other")
    git(shop, "checkout", "-q", "main")
    (shop / "cart.py").write_text("mine\n")
    async with served(shop) as client:
        words = await refused(client, "git_checkout", branch="other")
        assert "commit them first" in words
        assert "cart.py" in words
        git(shop, "checkout", "-q", "--", "cart.py")
        (shop / "new").write_text("mine\n")
        assert "new" in await refused(client, "git_checkout", branch="other")
        assert "there is no branch, tag or commit 'othr': did you mean 'other'?" in await refused(
            client, "git_checkout", branch="othr"
        )
        assert "'start' needs 'create'" in await refused(client, "git_checkout", branch="x", start="main")
        assert "already" in await refused(client, "git_checkout", branch="other", create=True)
    assert (shop / "new").read_text() == "mine\n"
    assert git(shop, "branch", "--show-current") == "main"


async def test_a_branch_that_only_the_remote_has_is_followed(shop: Path) -> None:
    """A colleague's branch is checked out by its name, as git does it."""
    bare = remote_of(shop)
    git(bare, "branch", "theirs", "main")
    git(shop, "fetch", "-q")
    async with served(shop) as client:
        assert (await done(client, "git_checkout", branch="theirs"))["branch"] == "theirs"
        assert (await done(client, "git_status"))["upstream"] == "origin/theirs"
        await done(client, "git_checkout", branch="main")
        git(shop, "branch", "-q", "-D", "theirs")
        git(shop, "remote", "add", "second", str(bare))
        git(shop, "fetch", "-q", "second")
        assert "a branch of several remotes" in await refused(client, "git_checkout", branch="theirs")
        await done(client, "git_checkout", branch="theirs", create=True, start="second/theirs")


async def test_a_commit_takes_what_it_is_told_and_nothing_else(shop: Path) -> None:
    """Work of others in the same tree stays theirs."""
    (shop / "cart.py").write_text("mine\n")
    (shop / "docs/plan.md").unlink()
    (shop / "staged").write_text("by hand\n")
    git(shop, "add", "staged")
    (shop / "-rf").write_text("odd\n")
    (shop / "*").write_text("star\n")
    async with served(shop) as client:
        some = await done(client, "git_commit", message="Some", paths=["-rf", "docs", "*"])
        assert {one["path"]: one["change"] for one in some["files"]} == {
            "*": "added",
            "-rf": "added",
            "docs/plan.md": "deleted",
        }
        assert git(shop, "status", "--porcelain") == "M cart.py\nA  staged"
        rest = await done(client, "git_commit", message="The rest\r\n\r\n# kept", author_name="Eve", author_email="e@x")
        assert [one["path"] for one in rest["files"]] == ["cart.py", "staged"]
    assert git(shop, "log", "-1", "--format=%an <%ae> %cn%n%B") == "Eve <e@x> Ada\nThe rest\n\n# kept"


async def test_a_commit_that_cannot_be_is_refused_and_stages_nothing(shop: Path) -> None:
    """A refusal leaves everything as it was, or the next commit has a surprise in it."""
    (shop / ".gitignore").write_text("*.log\n")
    commit(shop, {}, "Ignore logs")
    (shop / "a.log").touch()
    async with served(shop) as client:
        assert "nothing to commit: no file has changed" in await refused(client, "git_commit", message="Empty")
        (shop / "cart.py").write_text("changed\n")
        words = await refused(client, "git_commit", message="None", paths=["docs"])
        assert "nothing to commit in 'docs': changed are 'cart.py'" in words
        assert "there is no file 'none'" in await refused(client, "git_commit", message="M", paths=["cart.py", "none"])
        assert "nothing to commit in 'a.log'" in await refused(client, "git_commit", message="M", paths=["a.log"])
        assert "say in words" in await refused(client, "git_commit", message=" \n")
        assert "or neither" in await refused(client, "git_commit", message="M", author_name="Eve")
        assert "without '<' and '>'" in await refused(
            client, "git_commit", message="M", author_name="Eve <x>", author_email="e"
        )
        assert "at least 1 item" in await refused(client, "git_commit", message="M", paths=[])
    assert git(shop, "status", "--porcelain") == "M cart.py"


async def test_without_an_identity_the_way_to_one_is_told(tmp_path: Path) -> None:
    """A name made up from the machine's would be in the history for ever."""
    folder = made(tmp_path / "new", identity=False)
    (folder / "a").touch()
    async with served(folder) as client:
        words = await refused(client, "git_commit", message="Who?")
        assert "'author_name' and 'author_email'" in words
        assert "git config user.name" in words
        assert git(folder, "status", "--porcelain") == "?? a"
        await done(client, "git_commit", message="Eve", author_name="Eve", author_email="eve@example.org")
    assert git(folder, "log", "--format=%an %ae %cn %ce") == "Eve eve@example.org Eve eve@example.org"


async def test_unfinished_work_of_a_person_is_told_and_left_alone(shop: Path) -> None:
    """Conflict markers must not be committed as if they were resolved."""
    git(shop, "checkout", "-q", "-b", "other")
    commit(shop, {"cart.py": "other\n"})
    git(shop, "checkout", "-q", "main")
    commit(shop, {"cart.py": "main\n"})
    with pytest.raises(AssertionError):
        git(shop, "merge", "other")
    async with served(shop) as client:
        found = await done(client, "git_status")
        assert (found["under_way"], found["conflicts"]) == ("merge", ["cart.py"])
        assert "a merge is under way" in await told(client, "git_status")
        assert "conflicts are not resolved in 'cart.py'" in await refused(client, "git_commit", message="M")
        assert "a merge is under way" in await refused(client, "git_merge", source="other")
        assert "conflicting" in await told(client, "git_diff")
    assert "<<<<<<<" in (shop / "cart.py").read_text()


async def test_of_several_repositories_one_must_be_named(shop: Path, tmp_path: Path) -> None:
    """A guess would commit in the wrong place."""
    other, twin = made(tmp_path / "other"), made(tmp_path / "deep" / "shop")
    (tmp_path / "link").symlink_to(other)
    async with served(shop, other, twin) as client:
        assert "which repository? Set 'repository' to one of" in await refused(client, "git_status")
        for name in ("other", str(other), str(tmp_path / "link")):
            assert (await done(client, "git_status", repository=name))["repository"] == "other"
        assert (await done(client, "git_status", repository=str(twin)))["repository"] == str(twin)
        assert "may not be used here" in await refused(client, "git_status", repository="shop")
