"""Jira's REST API: how it is addressed, which of its two versions is spoken, how it tells failures."""

import base64
from typing import Any, Literal, TypeAlias

from squidbot.servers.jira.document import to_document
from squidbot.servers.rest import Api, RestClient

Version: TypeAlias = Literal["2", "3"]
"""3 is the cloud's, in which texts are documents and people have account ids; 2 is the data center's."""


def jira(url: str, *, username: str | None, token: str) -> Api:
    """Jira for a user with an API token, or, without a name, for the owner of a personal token."""
    if username is None:
        credentials, from_ = f"Bearer {token}", "JIRA_PERSONAL_TOKEN"
        encoded = token
    else:
        encoded = base64.b64encode(f"{username}:{token}".encode()).decode()
        credentials, from_ = f"Basic {encoded}", "JIRA_USERNAME and JIRA_API_TOKEN"
    return Api(
        name="Jira",
        url=url,
        url_from="JIRA_URL",
        token_from=from_,
        headers={"accept": "application/json", "authorization": credentials, "user-agent": "squidbot-jira"},
        secrets=(token, encoded),
        explain=explain,
    )


def explain(data: Any) -> str:
    """The messages, and what is wrong with each field."""
    if not isinstance(data, dict):
        return ""
    messages, errors = data.get("errorMessages"), data.get("errors")
    parts = [str(message) for message in messages] if isinstance(messages, list) else []
    parts += [f"{field}: {problem}" for field, problem in errors.items()] if isinstance(errors, dict) else []
    return "; ".join(parts) or str(data.get("message") or data.get("errorMessage") or "")


class Jira:
    """A client, and which version of the API it speaks: the server says, unless it is given."""

    def __init__(self, rest: RestClient, version: Version | None = None) -> None:
        self.rest = rest
        self._version = version

    async def version(self) -> Version:
        if self._version is None:
            info = await self.rest.get("/rest/api/2/serverInfo")
            cloud = isinstance(info, dict) and info.get("deploymentType") == "Cloud"
            self._version = "3" if cloud else "2"
        return self._version

    async def is_cloud(self) -> bool:
        return await self.version() == "3"

    async def path(self, rest: str) -> str:
        """Of the platform's API; the one of boards and sprints has another, the same everywhere."""
        return f"/rest/api/{await self.version()}{rest}"

    async def text(self, text: str) -> Any:
        """A text in the form that this Jira takes."""
        return to_document(text) if await self.is_cloud() else text

    def page(self, key: str) -> str:
        """Where people look at a ticket."""
        return f"{self.rest.api.url}/browse/{key}"
