"""Searching: code by a real grep over the default branch, issues by words and qualifiers."""

import re
from fnmatch import fnmatch
from typing import Any

from squidbot.practice.github import shapes
from squidbot.practice.github.issues import shape
from squidbot.practice.github.manners import cut, error, invalid
from squidbot.practice.people import ORGANISATION
from squidbot.practice.repository import DEFAULT_BRANCH
from squidbot.practice.store import Document
from squidbot.practice.web import Answer, Call

_TERM = re.compile(r'(?P<minus>-?)(?:(?P<key>[a-z-]+):)?(?:"(?P<phrase>[^"]*)"|(?P<word>\S+))', re.IGNORECASE)
_LANGUAGES = {
    "python": (".py",),
    "javascript": (".js",),
    "html": (".html",),
    "css": (".css",),
    "markdown": (".md",),
    "yaml": (".yml", ".yaml"),
    "toml": (".toml",),
    "dockerfile": ("Dockerfile",),
}
_FRAGMENT = 200


def search_code(call: Call) -> Answer:
    words, qualifiers = _query(call)
    if not words:
        raise error(422, "ERROR_TYPE_QUERY_PARSING_FATAL unable to parse query!")
    repository = call.world.repository
    sha = repository.resolve(DEFAULT_BRANCH) or ""
    found = repository.grep(sha, words) if _within(qualifiers) else []
    paths = [path for path in found if all(_path_fits(path, key, value) for _, key, value in qualifiers)]
    part, headers = cut(call, paths)
    items = [_code_item(call, path, sha, words) for path in part]
    return Answer({"total_count": len(paths), "incomplete_results": False, "items": items}, headers=headers)


def search_issues(call: Call) -> Answer:
    words, qualifiers = _query(call)
    found = [
        issue
        for issue in call.world.store.all("issue")
        if _within(qualifiers)
        and all(word.lower() in f"{issue['title']}\n{issue['body']}".lower() for word in words)
        and all(_issue_fits(call, issue, key, value) != minus for minus, key, value in qualifiers)
    ]
    key = "updated_at" if call.query.get("sort") == "updated" else "created_at"
    found.sort(key=lambda issue: (issue[key], issue["id"]), reverse=call.query.get("order", "desc") == "desc")
    part, headers = cut(call, found)
    items = [shape(call, issue) | {"score": 1.0} for issue in part]
    answer = {"total_count": len(found), "incomplete_results": False, "search_type": "lexical", "items": items}
    return Answer(answer, headers=headers)


def search_repositories(call: Call) -> Answer:
    words, qualifiers = _query(call)
    known = f"{shapes.FULL_NAME} {shapes.minimal_repository(call)['description']}".lower()
    fits = _within(qualifiers) and all(word.lower() in known for word in words)
    items = [shapes.repository(call) | {"score": 1.0}] if fits else []
    return Answer({"total_count": len(items), "incomplete_results": False, "items": items})


def _query(call: Call) -> tuple[list[str], list[tuple[bool, str, str]]]:
    text = call.query.get("q", "").strip()
    if not text:
        raise invalid("Search", "q", "missing")
    words: list[str] = []
    qualifiers: list[tuple[bool, str, str]] = []
    for term in _TERM.finditer(text):
        value = term["phrase"] if term["phrase"] is not None else term["word"]
        if term["key"]:
            qualifiers.append((bool(term["minus"]), term["key"].lower(), value))
        elif value and value not in {"AND", "OR", "NOT"}:
            words.append(value)
    return words, qualifiers


def _within(qualifiers: list[tuple[bool, str, str]]) -> bool:
    """Whether this repository is searched at all; GitHub says so when none is."""
    for _, key, value in qualifiers:
        if key == "repo" and value.lower() != shapes.FULL_NAME:
            raise invalid(
                "Search",
                "q",
                message="The listed users and repositories cannot be searched either because the resources do not "
                "exist or you do not have permission to view them.",
            )
        if key in {"org", "user"} and value.lower() != ORGANISATION:
            return False
    return True


def _path_fits(path: str, key: str, value: str) -> bool:
    name = path.rpartition("/")[2]
    match key:
        case "path":
            return path.startswith(value.strip("/")) or fnmatch(path, value) or f"/{value.strip('/')}/" in f"/{path}"
        case "filename":
            return value.lower() in name.lower()
        case "extension":
            return name.endswith(f".{value.lstrip('.')}")
        case "language":
            return name.endswith(_LANGUAGES.get(value.lower(), (f".{value.lower()}",)))
        case _:
            return True


def _code_item(call: Call, path: str, sha: str, words: list[str]) -> Document:
    entries = call.world.repository.tree(sha, path) or []
    blob = entries[0].sha
    item = {
        "name": path.rpartition("/")[2],
        "path": path,
        "sha": blob,
        "url": f"{shapes.repo_url(call, 'contents', path)}?ref={sha}",
        "git_url": shapes.repo_url(call, "git/blobs", blob),
        "html_url": shapes.html_url(call, "blob", sha, path),
        "repository": shapes.minimal_repository(call),
        "score": 1.0,
    }
    if "text-match" in call.accept:
        text = call.world.repository.blob(blob).decode(errors="replace")
        item["text_matches"] = [_text_match(text, word, str(item["url"])) for word in words]
    return item


def _text_match(text: str, word: str, url: str) -> dict[str, Any]:
    at = text.lower().find(word.lower())
    start = text.rfind("\n", 0, max(at - _FRAGMENT // 2, 0)) + 1
    fragment = text[start : start + _FRAGMENT]
    place = [at - start, at - start + len(word)]
    return {
        "object_url": url,
        "object_type": "FileContent",
        "property": "content",
        "fragment": fragment,
        "matches": [{"text": text[at : at + len(word)], "indices": place}],
    }


def _issue_fits(call: Call, issue: Document, key: str, value: str) -> bool:
    me = call.person.login
    value = me if value == "@me" else value.lower()
    match key:
        case "is" | "type" | "state":
            facts = {issue["state"], "pr" if issue["pull"] else "issue"}
            facts |= {"merged"} if issue["pull"] and issue["pull"]["merged_at"] else {"unmerged"}
            facts |= {"draft"} if issue["pull"] and issue["pull"]["draft"] else set()
            return value in facts
        case "author":
            return bool(value == issue["user"])
        case "assignee":
            return value in issue["assignees"]
        case "label":
            return value in {name.lower() for name in issue["labels"]}
        case "no":
            return not issue[{"assignee": "assignees", "label": "labels"}.get(value, "closed_at")]
        case "head" | "base":
            return bool(issue["pull"] and issue["pull"][key].lower() == value)
        case _:
            return True
