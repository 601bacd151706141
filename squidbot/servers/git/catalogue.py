"""How each tool is announced: its name, its schemas, and honest hints of what it does."""

from squidbot.servers.git import changing as work
from squidbot.servers.git import merging, models, reading, remotes
from squidbot.servers.git.command import World
from squidbot.servers.tools import Tool, changing
from squidbot.servers.tools import reading as looking

INSTRUCTIONS = (
    "Git in the repositories of this server. Paths are relative to the repository's root. A usual day: git_pull, "
    "git_checkout with 'create', git_status, git_commit, git_push. Nothing is ever forced or thrown away, and a merge "
    "that conflicts is taken back."
)

TOOLS: tuple[Tool[World], ...] = (
    Tool(
        "git_status",
        "Show the state of the repository",
        "Show the current branch, how it stands to its upstream, and all changes that are not committed.",
        models.Status,
        models.StatusFound,
        looking(),
        reading.git_status,
    ),
    Tool(
        "git_diff",
        "Show differences",
        "Show what changed: by default files against what is staged; with 'base' against a branch, tag or commit.",
        models.Diff,
        models.DiffFound,
        looking(),
        reading.git_diff,
    ),
    Tool(
        "git_log",
        "Show commits",
        "List commits, latest first, if wanted only some: by path, author, text or time.",
        models.Log,
        models.LogFound,
        looking(),
        reading.git_log,
    ),
    Tool(
        "git_branch",
        "List or create branches",
        "List the branches, or with action 'create' make a new one, without switching to it.",
        models.Branch,
        models.BranchFound,
        changing(destructive=False, idempotent=True),
        work.git_branch,
    ),
    Tool(
        "git_checkout",
        "Switch branches",
        "Switch to a branch, with 'create' to a new one. Refused if uncommitted changes would be lost.",
        models.Checkout,
        models.CheckedOut,
        changing(destructive=False, idempotent=True),
        work.git_checkout,
    ),
    Tool(
        "git_commit",
        "Commit changes",
        "Stage and commit the named paths, or every change including new and deleted files.",
        models.MakeCommit,
        models.Committed,
        changing(destructive=False, idempotent=False),
        work.git_commit,
    ),
    Tool(
        "git_push",
        "Push a branch",
        "Push a branch to its remote, never by force; a branch without an upstream gets one.",
        models.Push,
        models.Pushed,
        changing(destructive=False, idempotent=True, open_world=True),
        remotes.git_push,
    ),
    Tool(
        "git_pull",
        "Pull from the remote",
        "Fetch the upstream of the current branch and merge it. A conflict is reported and changes nothing.",
        models.Pull,
        models.Merged,
        changing(destructive=False, idempotent=True, open_world=True),
        remotes.git_pull,
    ),
    Tool(
        "git_merge",
        "Merge a branch",
        "Merge a branch, tag or commit into the current branch. A conflict is reported and changes nothing.",
        models.Merge,
        models.Merged,
        changing(destructive=False, idempotent=True),
        merging.git_merge,
    ),
)
