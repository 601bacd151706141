"""The conformance client on the plain SDK, so that our score can be read beside its score.

python tests/conformance/plain.py URL                # what the judge runs
python -m tests.conformance.judge tests/conformance/plain.py
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
import mcp_types as types
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.conformance.script import CLIENT_METADATA, REDIRECT, context, defaults, is_modern, play, scenario


class Memory:
    """Keeps tokens and registration for one run."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


def sign_in(url: str) -> OAuthClientProvider:
    """A provider whose browser is a request: the judge's sign-in page redirects at once."""
    redirected: dict[str, list[str]] = {}

    async def browse(address: str) -> None:
        async with httpx2.AsyncClient(follow_redirects=False) as browser:
            answer = await browser.get(address)
        redirected.update(parse_qs(urlsplit(answer.headers["location"]).query))

    async def come_back() -> AuthorizationCodeResult:
        first = {key: values[0] for key, values in redirected.items()}
        return AuthorizationCodeResult(code=first["code"], state=first.get("state"), iss=first.get("iss"))

    memory = Memory()
    redirect = AnyUrl(REDIRECT.format(port=3000))
    if "client_id" in context():
        memory.client = OAuthClientInformationFull(
            client_id=context()["client_id"],
            client_secret=context().get("client_secret"),
            redirect_uris=[redirect],
            token_endpoint_auth_method="client_secret_basic",
        )
    return OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="squidbot-plain", redirect_uris=[redirect]),
        memory,
        browse,
        come_back,
        client_metadata_url=CLIENT_METADATA,
    )


async def main(url: str) -> None:
    async def elicit(context: object, params: types.ElicitRequestParams) -> types.ElicitResult:
        form = params.requested_schema if isinstance(params, types.ElicitRequestFormParams) else {}
        return types.ElicitResult(action="accept", content=defaults(form))

    auth = sign_in(url) if scenario().startswith("auth/") else None
    async with httpx2.AsyncClient(auth=auth, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        mode = "auto" if is_modern() else "legacy"
        async with Client(transport, mode=mode, read_timeout_seconds=30, elicitation_callback=elicit) as client:

            async def call(name: str, arguments: Mapping[str, Any]) -> object:
                return await client.call_tool(name, dict(arguments))

            listed = await client.list_tools()
            await play({tool.name: tool.input_schema for tool in listed.tools}, call)


if __name__ == "__main__":
    anyio.run(main, sys.argv[1])
