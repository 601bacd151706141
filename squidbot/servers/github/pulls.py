"""The tools for pull requests: open, read, change and review, merge."""

from collections import Counter
from typing import Final

from squidbot.servers.github import results
from squidbot.servers.github.api import PAGE, listed
from squidbot.servers.github.arguments import (
    CreatePullRequest,
    GetPullRequest,
    MergePullRequest,
    ReviewRequest,
    UpdatePullRequest,
)
from squidbot.servers.github.words import details_in_words
from squidbot.servers.refusal import Refused
from squidbot.servers.rest import ApiFailed, RestClient, objects, together
from squidbot.servers.tools import Answer, said

_DIFF: Final = "application/vnd.github.diff"
_PASSED: Final = frozenset({"success", "neutral", "skipped"})
_PENDING: Final = frozenset({"pending", None})


async def create_pull_request(client: RestClient, asked: CreatePullRequest) -> Answer:
    """A pull request from a pushed branch."""
    base = asked.base
    if base is None:
        base = client.parsed(results.RepositoryDetails, await client.get(f"/repos/{asked.repository}")).default_branch
    body = {"title": asked.title, "head": asked.head, "base": base, "body": asked.body, "draft": asked.draft}
    try:
        data = await client.send("POST", f"/repos/{asked.repository}/pulls", body)
    except ApiFailed as failure:
        # GitHub's own word for a branch that it does not have is 'invalid'.
        hint = f": push {asked.head!r} first, or check its name" if "head invalid" in str(failure) else ""
        raise ApiFailed(f"{failure}{hint}", status=failure.status) from None
    pull = client.parsed(results.PullRequest, data)
    return said(pull, f"opened #{pull.number} {pull.title!r}, {pull.head} into {pull.base}: {pull.url}")


async def get_pull_request(client: RestClient, asked: GetPullRequest) -> Answer:
    """A pull request with its files, reviews and checks."""
    path = _path(asked)
    data = await client.get(path)
    pull = client.parsed(results.PullRequest, data)
    (files, more_files), (reviews, more_reviews), checks, diff = await together(
        lambda: listed(client, f"{path}/files", {}, limit=PAGE),
        lambda: listed(client, f"{path}/reviews", {}, limit=PAGE),
        lambda: _checks(client, asked.repository, pull.head_sha),
        lambda: _diff(client, path, wanted=asked.include_diff),
    )
    text, whole = diff
    notes = [
        *([f"only the first {PAGE} files"] if more_files else []),
        *([f"only the first {PAGE} reviews"] if more_reviews else []),
        *([f"the diff is cut after {results.MAX_DIFF} bytes"] if not whole else []),
    ]
    details = client.parsed(
        results.PullRequestDetails,
        data,
        files=[client.parsed(results.ChangedFile, file) for file in files],
        reviews=[client.parsed(results.Review, review) for review in reviews],
        checks=checks,
        diff=text,
        notes=notes,
    )
    return said(details, details_in_words(details))


async def update_pull_request(client: RestClient, asked: UpdatePullRequest) -> Answer:
    """Another title, text, state or base, and a review."""
    path = _path(asked)
    changes = asked.model_dump(include={"title", "body", "state", "base"}, exclude_none=True)
    data = await client.send("PATCH", path, changes) if changes else await client.get(path)
    pull = client.parsed(results.PullRequest, data)
    review = None
    if asked.review is not None:
        try:
            review = await _reviewed(client, path, asked.review, pull.head_sha)
        except ApiFailed as failure:
            raise _half_done(
                f"changed {', '.join(changes)}, but the review is not submitted", failure, changes
            ) from None
    updated = client.parsed(results.PullRequestUpdated, data, changed=list(changes), review=review)
    done = [f"changed {', '.join(changes)}"] if changes else []
    done += [f"submitted a review ({review.state})"] if review else []
    return said(updated, f"#{pull.number}: {' and '.join(done)}; it is {pull.state}: {pull.url}")


async def merge_pull_request(client: RestClient, asked: MergePullRequest) -> Answer:
    """A merge of just the commits that were looked at, after an approval if that is asked for."""
    path = _path(asked)
    pull = client.parsed(results.PullRequest, await client.get(path))
    _check_mergeable(pull, asked)
    if asked.approve:
        await _reviewed(client, path, ReviewRequest(event="approve"), pull.head_sha)
    # With the head that was seen here, nothing that is pushed meanwhile slips in.
    body = {
        "merge_method": asked.method,
        "sha": pull.head_sha,
        "commit_title": asked.title,
        "commit_message": asked.message,
    }
    try:
        data = await client.send(
            "PUT", f"{path}/merge", {key: value for key, value in body.items() if value is not None}
        )
    except ApiFailed as failure:
        raise _half_done("approved, but not merged", failure, asked.approve) from None
    merged = client.parsed(
        results.Merged, data, number=pull.number, approved=asked.approve, base=pull.base, url=pull.url
    )
    first = "approved and merged" if asked.approve else "merged"
    return said(merged, f"{first} #{pull.number} into {pull.base} as {merged.sha} ({asked.method}): {pull.url}")


def _path(asked: GetPullRequest | UpdatePullRequest | MergePullRequest) -> str:
    return f"/repos/{asked.repository}/pulls/{asked.number}"


def _half_done(done: str, failure: ApiFailed, happened: object) -> ApiFailed:
    """A failure after a first step says what was done, so that nobody does it twice."""
    return ApiFailed(f"{done}: {failure}", status=failure.status) if happened else failure


async def _reviewed(client: RestClient, path: str, review: ReviewRequest, commit: str) -> results.Review:
    """A review of the commit that is the head now, not of what may be pushed meanwhile."""
    body = {"event": review.event.upper(), "commit_id": commit} | ({"body": review.body} if review.body else {})
    return client.parsed(results.Review, await client.send("POST", f"{path}/reviews", body))


def _check_mergeable(pull: results.PullRequest, asked: MergePullRequest) -> None:
    """What would fail is refused before anything is approved."""
    name = f"#{pull.number}"
    if pull.merged:
        raise Refused(f"{name} is merged already")
    if pull.state == "closed":
        raise Refused(f"{name} is closed: open it again with update_pull_request, state 'open'")
    if pull.draft:
        raise Refused(f"{name} is a draft: its author must mark it as ready for review first")
    if asked.expected_head not in {None, pull.head_sha}:
        raise Refused(f"the head of {name} is now {pull.head_sha}, not {asked.expected_head}: look at what came since")
    if pull.mergeable is False:
        raise Refused(f"{name} has conflicts with {pull.base!r}: merge {pull.base!r} into {pull.head!r}, and push")


async def _diff(client: RestClient, path: str, *, wanted: bool) -> tuple[str | None, bool]:
    return await client.text(path, accept=_DIFF, limit=results.MAX_DIFF) if wanted else (None, True)


async def _checks(client: RestClient, repository: str, commit: str) -> results.Checks | None:
    """Both kinds that GitHub has: check runs of apps, and the older statuses."""
    path = f"/repos/{repository}/commits/{commit}"
    try:
        runs, statuses = await together(
            lambda: client.get(f"{path}/check-runs", {"per_page": PAGE}),
            lambda: client.get(f"{path}/status", {"per_page": PAGE}),
        )
    except ApiFailed as failure:
        if failure.status in {403, 404}:
            # Many tokens may not see them, and the rest of the answer is worth having.
            return None
        raise
    outcomes = [(run.get("name"), run.get("conclusion")) for run in objects(runs, "check_runs")]
    outcomes += [(status.get("context"), status.get("state")) for status in objects(statuses, "statuses")]
    counted = Counter(_outcome(outcome) for _, outcome in outcomes)
    failing = [str(name) for name, outcome in outcomes if _outcome(outcome) == "failed"]
    return results.Checks(
        passed=counted["passed"], failed=counted["failed"], pending=counted["pending"], failing=failing
    )


def _outcome(word: str | None) -> str:
    return "passed" if word in _PASSED else "pending" if word in _PENDING else "failed"
