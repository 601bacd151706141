"""The git server against callers and repositories that mean harm: no option, no way out, no program of theirs."""

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client

from squidbot.servers.git.repositories import open_all
from squidbot.servers.git.safety import Purpose, environment, refuse_programs, repository_keys
from squidbot.servers.refusal import Refused
from tests.servers.gitting import commit, done, everything, executable, git, made, refused, remote_of, served, text

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("F-01")]

HOOKS = (
    "pre-commit",
    "post-commit",
    "post-checkout",
    "pre-push",
    "post-merge",
    "reference-transaction",
    "post-rewrite",
)
EVERY_TOOL: tuple[tuple[str, dict[str, Any]], ...] = (
    ("git_status", {}),
    ("git_diff", {}),
    ("git_diff", {"base": "main", "target": "other"}),
    ("git_log", {"paths": ["cart.py"]}),
    ("git_commit", {"message": "Change"}),
    ("git_branch", {"action": "create", "name": "new"}),
    ("git_push", {}),
    ("git_pull", {}),
    ("git_merge", {"source": "other"}),
    ("git_checkout", {"branch": "other"}),
    ("git_checkout", {"branch": "new"}),
)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A repository where every kind of program that git can be given has something to do."""
    folder = made(tmp_path / "shop")
    commit(folder, {"cart.py": "one\n", ".gitattributes": "* filter=trap diff=trap merge=trap\n"}, "Begin")
    git(folder, "checkout", "-q", "-b", "other")
    commit(folder, {"cart.py": "other\n"}, "Other")
    git(folder, "checkout", "-q", "main")
    commit(folder, {"cart.py": "main\n"}, "Main")
    remote_of(folder)
    (folder / "cart.py").write_text("changed\n")
    return folder


@pytest.fixture
def sprung(tmp_path: Path) -> Path:
    """The file that is there when a trap has sprung."""
    return tmp_path / "sprung"


@pytest.fixture
def trap(tmp_path: Path, sprung: Path) -> Path:
    """The program that must never run."""
    return executable(tmp_path / "trap", f"touch {sprung}", "exit 1")


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A repository that this server was not given, and that must stay as it is."""
    folder = made(tmp_path / "outside")
    commit(folder, {"secret": "secret\n"}, "Secret")
    before = everything(folder), git(folder, "for-each-ref")
    yield folder
    assert (everything(folder), git(folder, "for-each-ref")) == before


def setting(**values: str) -> Callable[[Path, Path], None]:
    """A trap that is set in the repository's own configuration."""

    def arm(shop: Path, trap: Path) -> None:
        for name, value in values.items():
            git(shop, "config", name.replace("__", "."), value.replace("TRAP", str(trap)))

    return arm


def hooks(shop: Path, trap: Path) -> None:
    for name in HOOKS:
        shutil.copy(trap, shop / ".git" / "hooks" / name)


def hooks_elsewhere(shop: Path, trap: Path) -> None:
    for name in HOOKS:
        (shop / "husky").mkdir(exist_ok=True)
        shutil.copy(trap, shop / "husky" / name)
    git(shop, "config", "core.hooksPath", "husky")


def included(shop: Path, trap: Path) -> None:
    (shop / "more.config").write_text(f'[filter "trap"]\n\tclean = {trap}\n')
    git(shop, "config", "include.path", "../more.config")


def nested(shop: Path, trap: Path) -> None:
    inner = made(shop / "nested")
    commit(inner, {"a": "a\n", ".gitattributes": "* filter=trap\n"})
    git(shop, "add", "nested")
    git(shop, "commit", "-q", "-m", "Nest", "nested")
    git(inner, "config", "filter.trap.clean", str(trap))
    (inner / "a").write_text("b\n")


def nested_diff(shop: Path, trap: Path) -> None:
    """The outer configuration has git look into the nested repository, whose own names the program."""
    inner = made(shop / "nested")
    commit(inner, {"a": "a\n"})
    git(shop, "add", "nested")
    git(shop, "commit", "-q", "-m", "Nest", "nested")
    commit(inner, {"a": "b\n"})
    git(inner, "config", "diff.external", str(trap))
    git(shop, "config", "diff.submodule", "diff")


def alternates(shop: Path, trap: Path) -> None:
    objects = shop.with_name("shop.git") / "objects"
    (shop / ".git" / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    git(shop, "config", "core.alternateRefsCommand", str(trap))


def promised(shop: Path, trap: Path) -> None:
    blob = git(shop, "rev-parse", "other:cart.py")
    (shop / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    setting(
        core__repositoryFormatVersion="1",
        extensions__partialClone="origin",
        remote__origin__promisor="true",
        remote__origin__url="ssh://x@127.0.0.1:9/y",
        core__sshCommand="TRAP",
    )(shop, trap)


def remote_inside(shop: Path, trap: Path) -> None:
    git(shop, "clone", "-q", "--bare", ".", "evil.git")
    shutil.copy(trap, shop / "evil.git" / "hooks" / "pre-receive")
    git(shop, "config", "remote.origin.url", "evil.git")


def remote_inside_by_link(shop: Path, trap: Path) -> None:
    remote_inside(shop, trap)
    link = shop.with_name("link")
    link.symlink_to(shop / "evil.git")
    git(shop, "config", "remote.origin.url", f"file://{link}")


TRAPS: dict[str, tuple[Callable[[Path, Path], None], str]] = {
    "a monitor": (setting(core__fsmonitor="TRAP"), "status"),
    "hooks": (hooks, "checkout -q -b x"),
    "hooks elsewhere": (hooks_elsewhere, "checkout -q -b x"),
    "a clean filter": (setting(filter__trap__clean="TRAP"), "add ."),
    "a smudge filter": (setting(filter__trap__smudge="TRAP"), "checkout -q -f other"),
    "a filter process": (setting(filter__trap__process="TRAP"), "add ."),
    "an included filter": (included, "add ."),
    "a filter of a nested repository": (nested, "status"),
    "an external diff of a nested repository": (nested_diff, "diff"),
    "a text conversion": (setting(diff__trap__textconv="TRAP"), "diff"),
    "a diff driver": (setting(diff__trap__command="TRAP"), "diff"),
    "an external diff": (setting(diff__external="TRAP"), "diff"),
    "a merge driver": (setting(merge__trap__driver="TRAP"), "-c core.pager=cat merge other"),
    "a signing program": (setting(gpg__program="TRAP", commit__gpgSign="true"), "commit -q -a -m x"),
    "an editor": (setting(core__editor="TRAP"), "commit -q -a"),
    "an ssh command": (setting(core__sshCommand="TRAP", remote__origin__url="ssh://x@127.0.0.1:9/y"), "fetch"),
    "an upload program": (setting(remote__origin__uploadpack="TRAP"), "fetch"),
    "a receiving program": (setting(remote__origin__receivepack="TRAP"), "push origin main"),
    "a command as a remote": (setting(remote__origin__url="ext::TRAP", protocol__ext__allow="always"), "fetch"),
    "a command as a rewritten remote": (
        setting(url__x__insteadOf="y", remote__origin__url="ext::TRAP", protocol__allow="always"),
        "fetch",
    ),
    "a proxy": (setting(core__gitProxy="TRAP", remote__origin__url="git://127.0.0.1:9/y"), "fetch"),
    "alternate references": (alternates, "fetch"),
    "an object to be fetched when needed": (promised, "diff main other"),
    "a remote within": (remote_inside, "push origin main:new"),
    "a remote within, by a link": (remote_inside_by_link, "push origin main:new"),
}


def is_there(path: Path) -> bool:
    return path.exists()


def springs(folder: Path, command: str, sprung: Path) -> bool:
    """Whether git, used by hand, walks into the trap; it is set anew."""
    subprocess.run(
        ["git", *command.split()], cwd=folder, capture_output=True, stdin=subprocess.DEVNULL, timeout=30, check=False
    )
    has = sprung.exists()
    sprung.unlink(missing_ok=True)
    return has


@pytest.mark.parametrize("name", TRAPS)
async def test_no_tool_runs_a_program_that_the_repository_names(
    shop: Path, trap: Path, sprung: Path, name: str
) -> None:
    """Whoever can write files of a repository must not run programs as the operator."""
    arm, command = TRAPS[name]
    arm(shop, trap)
    plain = shutil.copytree(shop, shop.with_name("plain"), symlinks=True)
    assert springs(plain, command, sprung), "the trap itself does not work"
    async with served(shop) as client:
        for tool, arguments in EVERY_TOOL:
            await client.call_tool(tool, arguments)
            assert not is_there(sprung), f"{tool} ran it"


async def test_what_the_repository_names_is_told_by_its_key_and_what_the_user_names_is_run(
    shop: Path, trap: Path, sprung: Path
) -> None:
    """A filter that is left out in silence would commit something else; the operator's own is trusted."""
    git(shop, "config", "filter.trap.clean", str(trap))
    async with served(shop) as client:
        words = await refused(client, "git_commit", message="M")
        assert (
            "the repository's own configuration would run a program or change what git does: filter.trap.clean" in words
        )
        assert "git config --global" in words
        await done(client, "git_log")
        git(shop, "config", "--unset", "filter.trap.clean")
        git(shop, "config", "--global", "filter.trap.clean", str(trap))
        await done(client, "git_commit", message="M")
    assert is_there(sprung)


async def test_a_clone_that_lacks_an_object_is_said_to_be_partial(shop: Path, trap: Path) -> None:
    """What git says of it leads astray: no protocol is at fault."""
    promised(shop, trap)
    async with served(shop) as client:
        assert "this clone is partial" in await refused(client, "git_diff", base="main", target="other")


async def test_nested_repositories_are_left_out_of_commits_and_said_to_be(shop: Path) -> None:
    """A link to a commit that nobody else has breaks everybody's clone."""
    inner = made(shop / "nested")
    commit(inner, {"a": "a\n"})
    async with served(shop) as client:
        made_commit = await done(client, "git_commit", message="M")
        assert made_commit["left_out"] == ["nested/"]
        words = await refused(client, "git_commit", message="M")
        assert "nothing to commit: no file has changed but submodules and nested repositories: 'nested/'" in words
    assert git(shop, "ls-files", "nested") == ""


INJECTED = (
    "--upload-pack=touch sprung",
    "-c",
    "--output=sprung",
    "-ccore.fsmonitor=touch sprung",
    "--exec=x",
    "--force",
)


@pytest.mark.parametrize(
    ("tool", "argument", "others"),
    [
        ("git_diff", "base", {}),
        ("git_diff", "target", {"base": "main"}),
        ("git_log", "revision", {}),
        ("git_branch", "name", {"action": "create"}),
        ("git_branch", "start", {"action": "create", "name": "x"}),
        ("git_checkout", "branch", {}),
        ("git_checkout", "start", {"branch": "x", "create": True}),
        ("git_push", "branch", {}),
        ("git_push", "remote", {}),
        ("git_pull", "branch", {}),
        ("git_pull", "remote", {}),
        ("git_merge", "source", {}),
    ],
)
async def test_no_name_is_taken_for_an_option(shop: Path, tool: str, argument: str, others: dict[str, Any]) -> None:
    """An option can write files and run programs."""
    before = everything(shop), git(shop, "for-each-ref")
    async with served(shop) as client:
        for value in INJECTED:
            assert "begins with '-'" in await refused(client, tool, **{argument: value}, **others)
    assert (everything(shop), git(shop, "for-each-ref")) == before


async def test_free_text_stays_text(shop: Path) -> None:
    """Messages, people and filters are values, whatever they look like."""
    async with served(shop) as client:
        made_commit = await done(
            client, "git_commit", message="--amend", author_name="--force", author_email="-c@x", paths=["cart.py"]
        )
        assert made_commit["subject"] == "--amend"
        for option in ("author", "text", "since", "until"):
            await done(client, "git_log", **{option: "--output=sprung"})
        assert (await done(client, "git_diff", paths=["--output=sprung"]))["files"] == []
        assert "there is no remote" in await refused(client, "git_push", remote="ext::sh")
        assert "there is no remote" in await refused(client, "git_pull", remote="../outside")
        assert "there is no branch" in await refused(client, "git_push", branch="+main")
        assert "there is no branch" in await refused(client, "git_push", branch="main:other")
        for name in ("main:refs/heads/other", "*", "main other"):
            assert "cannot be the name of a branch" in await refused(client, "git_pull", branch=name)
        git(shop, "config", "branch.main.merge", "refs/heads/main:refs/heads/other")
        assert "cannot be the name of a branch" in await refused(client, "git_pull")
        assert "one line" in await refused(client, "git_merge", source="main\nother")
        assert "control characters" in await refused(client, "git_merge", source="main\0")
        assert "control characters" in await refused(client, "git_commit", message="a\x1b[2J")
        assert "unicode" in await refused(client, "git_commit", message="\udcff")
    assert git(shop, "log", "-1", "--format=%an %s") == "--force --amend"
    assert "sprung" not in everything(shop)


@pytest.mark.parametrize("path", ["/etc/passwd", "../outside/secret", "docs/../../outside", ".."])
async def test_no_path_leads_out_of_the_repository(shop: Path, outside: Path, path: str) -> None:
    """Neither up nor from the root."""
    async with served(shop) as client:
        for tool, others in (("git_diff", {}), ("git_log", {}), ("git_commit", {"message": "M"})):
            words = await refused(client, tool, paths=[path], **others)
            assert "start at the root of the repository" in words


async def test_a_link_is_committed_as_a_link_and_never_followed(shop: Path, outside: Path) -> None:
    """What it points to is somebody else's."""
    (shop / "link").symlink_to(outside)
    async with served(shop) as client:
        assert "nothing to commit in 'link/secret'" in await refused(
            client, "git_commit", message="M", paths=["link/secret"]
        )
        await done(client, "git_commit", message="Link", paths=["link"])
    assert git(shop, "ls-files", "-s", "link").startswith("120000")
    assert git(shop, "ls-files", "link/secret") == ""


async def test_other_repositories_are_refused_however_they_are_named(shop: Path, outside: Path) -> None:
    """Working trees of the same repository included: another folder is another permission."""
    tree = shop.with_name("tree")
    git(shop, "worktree", "add", "-q", str(tree))
    link = shop / "inner"
    link.symlink_to(outside)
    async with served(shop) as client:
        for name in (outside, link, tree, shop / ".git", shop.parent, "outside", "..", ".", "", "/", "a\0b"):
            words = await refused(client, "git_status", repository=str(name))
            assert "may not be used here" in words


async def statuses(client: Client) -> str:
    return text(await client.call_tool("git_log", {})) + text(await client.call_tool("git_status", {}))


async def test_the_repository_cannot_be_exchanged_for_another(shop: Path, outside: Path) -> None:
    """Whoever writes in the folder could point .git, or git's own files, somewhere else."""
    async with served(shop) as client:
        git(shop, "config", "core.worktree", str(outside))
        (shop / ".git" / "commondir").write_text(f"{outside}/.git\n")
        assert "ecret" not in await statuses(client)
        (shop / ".git" / "commondir").unlink()
        (shop / ".git").rename(shop / "was.git")
        assert "is not where it was" in await refused(client, "git_status")
        (shop / ".git").write_text(f"gitdir: {outside}/.git\n")
        assert "is not where it was" in await refused(client, "git_log")
        with pytest.raises(Refused, match="does not know it as a working tree"):
            open_all([shop])
        (shop / ".git").unlink()
        (shop / ".git").symlink_to(outside / ".git")
        assert "is not where it was" in await refused(client, "git_log")
        with pytest.raises(Refused, match="is a symbolic link"):
            open_all([shop])


async def test_a_linked_working_tree_can_be_named_and_is_held_to(shop: Path, outside: Path) -> None:
    """The operator named it; its .git file may not lead elsewhere later."""
    tree = shop.with_name("tree")
    git(shop, "worktree", "add", "-q", str(tree))
    async with served(tree) as client:
        (tree / "new").touch()
        assert (await done(client, "git_commit", message="In the tree"))["branch"] == "tree"
        assert "would be lost" not in await refused(client, "git_checkout", branch="main")
        (tree / ".git").write_text(f"gitdir: {outside}/.git\n")
        assert "does not know it" in await refused(client, "git_log")
    assert git(shop, "log", "-1", "--format=%s", "tree") == "In the tree"


async def test_an_overdue_command_is_ended_with_all_that_it_started(shop: Path) -> None:
    """A hook of the remote that hangs must not hang the agent, nor stay behind."""
    bare = shop.with_name("shop.git")
    executable(bare / "hooks" / "pre-receive", "echo $$ > pid", "sleep 1000")
    git(shop, "commit", "-q", "-a", "-m", "Slow")
    async with served(shop, deadline=3) as client:
        words = await refused(client, "git_push")
        assert "git push did not end within 3 seconds and was stopped" in words
        pid = (bare / "pid").read_text().strip()
        await ended(int(pid))
        assert (await done(client, "git_status"))["ahead"] == 1


async def ended(pid: int) -> None:
    try:
        process = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        with anyio.fail_after(20):
            await anyio.wait_readable(process)
    finally:
        os.close(process)


async def test_an_overdue_merge_leaves_everything_as_it_was(shop: Path) -> None:
    """Nothing half done, by the clock either."""
    git(shop, "commit", "-q", "-a", "-m", "Mine")
    git(shop, "config", "--global", "merge.trap.driver", "sleep 1000")
    before = everything(shop), git(shop, "rev-parse", "HEAD")
    async with served(shop, deadline=3) as client:
        assert "git merge did not end within 3 seconds" in await refused(client, "git_merge", source="other")
        assert (await done(client, "git_status"))["clean"]
    assert (everything(shop), git(shop, "rev-parse", "HEAD")) == before
    assert not list((shop / ".git").glob("*.lock"))


async def test_a_lock_of_another_git_is_told_as_what_it_is(shop: Path) -> None:
    """A person at work in the same tree is no reason for alarm."""
    (shop / ".git" / "index.lock").touch()
    async with served(shop) as client:
        words = await refused(client, "git_commit", message="M")
        await done(client, "git_status")
    assert "another git process is at work" in words
    assert str(shop) not in words


async def test_a_broken_configuration_is_told_in_words(shop: Path) -> None:
    """Not as a crash."""
    (shop / ".git" / "config").write_text("[broken")
    async with served(shop) as client:
        assert "in file .git/config" in await refused(client, "git_status")


def test_variables_that_redirect_git_or_let_it_ask_do_not_reach_it() -> None:
    """They are set for a person at a terminal; identity and configuration are the operator's to give."""
    given = {
        "PATH": "/bin",
        "GIT_DIR": "/x",
        "GIT_EXTERNAL_DIFF": "x",
        "GIT_TRACE": "1",
        "GIT_ALLOW_PROTOCOL": "ext",
        "SSH_ASKPASS": "x",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.proxy",
        "SSH_AUTH_SOCK": "s",
    }
    kept = environment(given)
    assert {name: kept[name] for name in given if name in kept} == {
        "PATH": "/bin",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_AUTHOR_NAME": "Ada",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "http.proxy",
        "SSH_AUTH_SOCK": "s",
    }
    assert (kept["GIT_TERMINAL_PROMPT"], kept["GIT_ASKPASS"]) == ("0", "")


@pytest.mark.parametrize(
    ("purpose", "key"),
    [
        ("files", "filter.a.b.process"),
        ("files", "merge.x.driver"),
        ("files", "branch.main.mergeoptions"),
        ("files", "pull.twohead"),
        ("files", "hook.x.command"),
        ("references", "hook.x.command"),
        ("network", "credential.helper"),
        ("network", "credential.https://example.org.helper"),
        ("network", "core.sshcommand"),
        ("network", "http.savecookies"),
        ("network", "http.https://example.org.savecookies"),
        ("network", "remote.origin.vcs"),
        ("network", "lfs.customtransfer.x.path"),
    ],
)
def test_a_key_that_runs_a_program_counts_only_where_the_repository_sets_it(purpose: Purpose, key: str) -> None:
    """The operator's own configuration is trusted, a scope that nobody knows is not."""
    listing = f"global\0{key}\nx\0system\0{key}\nx\0command\0{key}\nx\0local\0core.bare\nfalse\0"
    refuse_programs(repository_keys(listing.encode()), purpose)
    for scope in ("local", "worktree", "unknown"):
        with pytest.raises(Refused, match=key):
            refuse_programs(repository_keys(f"{listing}{scope}\0{key}\nx\0".encode()), purpose)
