"""GitHub's REST API: how it is addressed, how it speaks of failures, and its lists."""

from collections.abc import Callable
from typing import Any, Final

from squidbot.servers.rest import Api, Query, RestClient, objects

PAGE: Final = 100
"""Items of one page: the most that GitHub gives."""
_MOST_PAGES: Final = 10


def github(url: str, token: str) -> Api:
    """GitHub, an Enterprise server or whatever speaks like them, for the owner of a token."""
    return Api(
        name="GitHub",
        url=url,
        url_from="GITHUB_API_URL",
        token_from="GITHUB_TOKEN",  # noqa: S106  the variable's name
        headers={
            "accept": "application/vnd.github+json",
            "authorization": f"Bearer {token}",
            "user-agent": "squidbot-github",
            "x-github-api-version": "2022-11-28",
        },
        secrets=(token,),
        explain=explain,
    )


def explain(data: Any) -> str:
    """`message`, and what its `errors` say of single fields."""
    if not isinstance(data, dict):
        return ""
    errors = data.get("errors")
    details = [_detail(error) for error in errors] if isinstance(errors, list) else []
    return "; ".join(part for part in (str(data.get("message") or ""), *details) if part)


def _detail(error: Any) -> str:
    if not isinstance(error, dict):
        return str(error)
    if error.get("message"):
        return str(error["message"])
    return " ".join(str(error[key]) for key in ("resource", "field", "code") if error.get(key))


async def listed(
    client: RestClient,
    path: str,
    query: Query,
    *,
    limit: int,
    wanted: Callable[[dict[str, Any]], bool] = lambda _item: True,
) -> tuple[list[dict[str, Any]], bool]:
    """The first `limit` wanted items of a list, and whether there are, or may be, more."""
    found: list[dict[str, Any]] = []
    more = False
    async for page in client.pages(path, {**query, "per_page": PAGE}, most=_MOST_PAGES):
        found += [item for item in objects(page.data) if wanted(item)]
        more = len(found) > limit or page.next_page is not None
        if len(found) > limit:
            break
    return found[:limit], more
