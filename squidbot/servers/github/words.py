"""The answers in words: what a model reads that is not shown the structured part."""

from squidbot.servers.github import results


def details_in_words(pull: results.PullRequestDetails) -> str:
    """A pull request, the important first."""
    state = "merged" if pull.merged else "draft" if pull.draft else pull.state
    merging = {True: "can be merged", False: "has conflicts", None: "mergeable or not: not known yet"}[pull.mergeable]
    lines = [
        f"#{pull.number} {pull.title} ({state}, by {pull.author}, {pull.head} into {pull.base}, head {pull.head_sha})",
        pull.url,
        *([merging] if state in {"open", "draft"} else []),
        _checks_in_words(pull.checks),
        *([f"labels: {', '.join(pull.labels)}"] if pull.labels else []),
        *_paragraph(pull.body),
        f"\n{pull.commits} commits, {pull.changed_files} files, +{pull.additions} -{pull.deletions}",
        *(f"  {file.path} ({file.status}, +{file.additions} -{file.deletions})" for file in pull.files),
        *(
            _said_by(review.author, f"{review.state} {review.submitted_at or ''}", review.body)
            for review in pull.reviews
        ),
        *_paragraph(pull.diff or ""),
        *(f"[{note}]" for note in pull.notes),
    ]
    return "\n".join(lines)


def issue_in_words(issue: results.IssueDetails) -> str:
    """An issue and its discussion."""
    kind = "pull request, see get_pull_request; " if issue.is_pull_request else ""
    missing = issue.comments - len(issue.discussion)
    lines = [
        f"#{issue.number} {issue.title} ({kind}{issue.state}, by {issue.author})",
        issue.url,
        *([f"labels: {', '.join(issue.labels)}"] if issue.labels else []),
        *([f"assigned to {', '.join(issue.assignees)}"] if issue.assignees else []),
        *_paragraph(issue.body),
        *(_said_by(comment.author, comment.created_at or "", comment.body) for comment in issue.discussion),
        *([f"[{missing} more comments: raise 'comments', or see the page]"] if missing > 0 else []),
    ]
    return "\n".join(lines)


def issues_in_words(found: results.Issues) -> str:
    """One line for each issue."""
    lines = [_issue_line(issue) for issue in found.issues] or ["no such issue"]
    return "\n".join([*lines, *(["[there are more: raise the limit, or narrow the search]"] if found.more else [])])


def repository_in_words(found: results.RepositoryDetails) -> str:
    """What a repository is, with what is known of it."""
    return "\n".join(
        f"{name}: {', '.join(value) if isinstance(value, list) else value}"
        for name, value in found.model_dump(mode="json").items()
        if value not in (None, [], "")
    )


def code_in_words(found: results.CodeMatches) -> str:
    """Files, each with the lines that match."""
    lines = []
    for match in found.matches:
        lines.append(match.path)
        lines += ["    " + line for fragment in match.fragments for line in fragment.splitlines()]
    more = ["[there are more: raise the limit, or narrow the search]"] if found.more else []
    return "\n".join([*(lines or ["nothing found"]), *more])


def _issue_line(issue: results.Issue) -> str:
    remarks = [
        issue.state,
        *([f"labels {', '.join(issue.labels)}"] if issue.labels else []),
        *([f"assigned to {', '.join(issue.assignees)}"] if issue.assignees else []),
    ]
    return f"#{issue.number} {issue.title} ({'; '.join(remarks)})"


def _checks_in_words(checks: results.Checks | None) -> str:
    if checks is None:
        return "checks: not shown to this token"
    failing = f" ({', '.join(checks.failing)})" if checks.failing else ""
    return f"checks: {checks.passed} passed, {checks.failed} failed{failing}, {checks.pending} pending"


def _said_by(author: str | None, remark: str, body: str) -> str:
    heading = f"\n{author}, {remark.strip()}"
    return f"{heading}:\n{body}" if body else heading


def _paragraph(text: str) -> list[str]:
    return [f"\n{text}"] if text else []
