"""A real MCP server that wants a sign-in, with its own authorization server, on the SDK's server side."""

import secrets
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import uvicorn
from mcp.server import Server
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    ProviderTokenVerifier,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl

from tests.fixtures.running import listening


class Authority(OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]):
    """Lets everybody in, and remembers whom."""

    def __init__(self) -> None:
        self.lifetime = 3600
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.access: dict[str, AccessToken] = {}
        self.grants: list[str] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        code = AuthorizationCode(
            code=secrets.token_urlsafe(),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        self.grants.append("authorization_code")
        return self._issue(client, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        self.grants.append("refresh_token")
        del self.refresh[refresh_token.token]
        return self._issue(client, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        self.access.pop(token.token, None)

    def _issue(self, client: OAuthClientInformationFull, scopes: list[str], resource: str | None) -> OAuthToken:
        access, refresh = secrets.token_urlsafe(), secrets.token_urlsafe()
        until = int(time.time()) + self.lifetime
        kept: dict[str, Any] = {"client_id": client.client_id, "scopes": scopes, "resource": resource}
        self.access[access] = AccessToken(token=access, expires_at=until, **kept)
        self.refresh[refresh] = RefreshToken(token=refresh, **kept)
        return OAuthToken(access_token=access, expires_in=self.lifetime, refresh_token=refresh, scope=" ".join(scopes))


@asynccontextmanager
async def guarded_server() -> AsyncIterator[tuple[str, Authority]]:
    """The url of a server that nobody enters without a token, and who hands them out."""
    authority = Authority()
    with listening() as listener:
        origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
        auth = AuthSettings(
            issuer_url=AnyHttpUrl(origin),
            resource_server_url=AnyHttpUrl(f"{origin}/mcp"),
            client_registration_options=ClientRegistrationOptions(
                enabled=True, valid_scopes=["tools"], default_scopes=["tools"]
            ),
            required_scopes=["tools"],
            validate_token_resource=True,
        )
        app = Server("guarded").streamable_http_app(
            auth=auth, auth_server_provider=authority, token_verifier=ProviderTokenVerifier(authority)
        )
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(server.serve, [listener])
            with anyio.fail_after(10):
                while not server.started:  # noqa: ASYNC110 - uvicorn has no event to wait for
                    await anyio.sleep(0.01)
            try:
                yield f"{origin}/mcp", authority
            finally:
                server.should_exit = True
