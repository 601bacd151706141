"""The world's front page: what this is, and what is open."""

from html import escape

from squidbot.practice.people import PEOPLE
from squidbot.practice.store import Document
from squidbot.practice.world import World

PROJECT = "SHOP"
_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem; }
h1 { margin-bottom: 0; } h2 { margin-top: 2.5rem; }
.note { background: var(--soft); border-left: 4px solid #c80; padding: .5rem 1rem; }
table { border-collapse: collapse; width: 100%; }
th, td { border-bottom: 1px solid var(--line); padding: .35rem .6rem .35rem 0; text-align: left; vertical-align: top; }
:target { background: #fc04; }
code { background: var(--soft); padding: .1em .3em; }
"""


def front_page(world: World, site: str) -> str:
    """Plain HTML without anything from elsewhere."""
    issues = [issue for issue in world.store.all("issue") if issue["state"] == "open"]
    pulls = [issue for issue in issues if issue["pull"]]
    tickets = [ticket for ticket in world.store.all("ticket") if ticket["status"] != "Done"]
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>squidbot practice world</title>
<style>{_STYLE}</style>
</head>
<body>
<h1>Practice world</h1>
<p>A forge and a tracker for practice, on this machine alone. Nothing here is real but the git repository.</p>
<p class="note">Tokens and paths are in <code>practice.json</code> in this world's folder. Personal tokens follow GitHub's
rules. One thing differs: the shared token acts as <code>squidbot-practice</code>, an owner of the organisation, which
may approve even the pull requests that it opened itself, so that one token can play every role.</p>
<table>
<tr><th>GitHub REST API</th><td><code>{escape(site)}/github</code>, also <code>{escape(site)}/api/v3</code></td></tr>
<tr><th>Jira Cloud REST API</th><td><code>{escape(site)}/jira</code></td></tr>
<tr><th>Jira Data Center REST API</th><td><code>{escape(site)}/jira-dc</code></td></tr>
</table>
{_table("Open pull requests", ("", "title", "branch", "by"), [_pull(pull) for pull in pulls])}
{_table("Open issues", ("", "title", "labels", "by"), [_issue(issue) for issue in issues if not issue["pull"]])}
{_table("Open tickets", ("", "summary", "status", "assignee"), [_ticket(ticket) for ticket in tickets])}
{_table("People", ("login", "name", "role", ""), [(p.login, p.login, p.name, p.role, "") for p in PEOPLE])}
</body>
</html>
"""


def _table(title: str, names: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    """Rows begin with the anchor that links lead to."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    lines = "\n".join(
        f'<tr id="{escape(anchor)}">{"".join(f"<td>{escape(cell)}</td>" for cell in cells)}</tr>'
        for anchor, *cells in rows
    )
    return f"<h2>{escape(title)}</h2>\n<table>\n<tr>{head}</tr>\n{lines}\n</table>" if rows else ""


def _pull(issue: Document) -> tuple[str, ...]:
    branches = f"{issue['pull']['head']} → {issue['pull']['base']}"
    return f"issue-{issue['id']}", f"#{issue['id']}", issue["title"], branches, issue["user"]


def _issue(issue: Document) -> tuple[str, ...]:
    return f"issue-{issue['id']}", f"#{issue['id']}", issue["title"], ", ".join(issue["labels"]), issue["user"]


def _ticket(ticket: Document) -> tuple[str, ...]:
    key = f"{PROJECT}-{ticket['id']}"
    return key, key, ticket["summary"], ticket["status"], ticket["assignee"] or ""
