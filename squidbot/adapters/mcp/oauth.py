"""Signs in at remote servers by OAuth: a person in a browser, or a program by itself.

The protocol (discovery, registration, PKCE, `iss`, the resource) is the SDK's. Ours is what it leaves open:
requests run side by side, a token that a server refuses is renewed before anybody is asked, tokens of an
earlier run can be renewed, nobody is asked who is not there, and a sign-in that fails is one request's failure.
"""

import logging
import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError, OAuthRegistrationError, OAuthTokenError
from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider
from mcp.client.auth.utils import extract_field_from_www_auth, issuers_match
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl

from squidbot.adapters.mcp.callback import PATH, free_port, waiting
from squidbot.adapters.mcp.http_plain import SIGN_IN_FAILED
from squidbot.adapters.mcp.network import where
from squidbot.adapters.mcp.tokens import Tokens, token_path
from squidbot.adapters.mcp.transport import Opening, SignIn
from squidbot.config.schema import MCPServerConfig
from squidbot.core.domain.errors import MCPConnectionError

Flow: TypeAlias = AsyncGenerator[httpx2.Request, httpx2.Response]

_A_PERSONS_PATIENCE = 300.0
_LONG_AGO = 1.0
_ERROR_CODE = re.compile(r'"error"\s*:\s*"([a-z_]{1,40})"')


def auth_for(config: MCPServerConfig, opening: Opening) -> httpx2.Auth | None:
    """How requests to this server are signed, if the settings ask for OAuth."""
    if config.auth is None:
        return None
    tokens = Tokens(None if opening.state is None else token_path(opening.state, config.digest))
    if config.auth.type == "client_credentials":
        return _ByItself(config, tokens)
    return _InBrowser(config, tokens, opening.sign_in)


def forget(config: MCPServerConfig, state: Path) -> bool:
    """Drop the tokens kept for this server; whether there were any."""
    path = token_path(state, config.digest)
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed


class _SignedIn(OAuthClientProvider):
    """The part that both ways of signing in share."""

    _config: MCPServerConfig
    _tokens: Tokens
    _can_sign_in: bool

    async def async_auth_flow(self, request: httpx2.Request) -> Flow:
        """Never raises: what goes wrong is told to the transport, which fails this one request with it."""
        if not self._initialized:
            async with self.context.lock:
                await self._initialize()
        if self.context.is_token_valid():
            # Past the SDK's lock, which is held from before a request until its answer: one at a time.
            token = self.context.current_tokens
            self._add_auth_header(request)
            response = yield request
            if not _wants_more(response):
                return
            if token is self.context.current_tokens and response.status_code == 401:
                self.context.token_expiry_time = _LONG_AGO  # so that it is renewed, if it can be
        flow = super().async_auth_flow(request)
        try:
            outgoing = await anext(flow)
            while True:
                response = yield outgoing
                if outgoing is request and _wants_more(response) and not self._can_sign_in:
                    raise self._nobody_there()
                outgoing = await flow.asend(response)
        except StopAsyncIteration:
            return
        except Exception as error:  # noqa: BLE001 - raised into the SDK it would end every neighbour
            request.extensions = {**request.extensions, SIGN_IN_FAILED: self._failed(error)}
        finally:
            await flow.aclose()
        yield request

    async def _initialize(self) -> None:
        await super()._initialize()
        self.context.token_expiry_time = self._tokens.expires_at
        self.context.oauth_metadata = self.context.oauth_metadata or self._tokens.metadata
        self.context.protected_resource_metadata = self.context.protected_resource_metadata or self._tokens.resource

    async def _perform_authorization(self) -> httpx2.Request:
        if self._config.auth is not None and self._config.auth.scopes:
            self.context.client_metadata.scope = " ".join(self._config.auth.scopes)
        return await super()._perform_authorization()

    async def _handle_token_response(self, response: httpx2.Response) -> None:
        await super()._handle_token_response(response)
        self._keep()

    async def _handle_refresh_response(self, response: httpx2.Response) -> bool:
        renewed = await super()._handle_refresh_response(response)
        if renewed:
            self._keep()
        return renewed

    def _keep(self) -> None:
        self._tokens.keep(
            expires_at=self.context.token_expiry_time,
            metadata=self.context.oauth_metadata,
            resource=self.context.protected_resource_metadata,
        )

    def _nobody_there(self) -> MCPConnectionError:
        return MCPConnectionError(
            f"{where(self.context.server_url)} wants a sign-in",
            server=self._config.name,
            hint=f"Run `squidbot servers login {self._config.name}`.",
            status=401,
            permanent=True,
        )

    def _failed(self, error: Exception) -> MCPConnectionError:
        if isinstance(error, MCPConnectionError):
            return error
        return MCPConnectionError(
            f"the sign-in for {where(self.context.server_url)} failed: {_words(error)}",
            server=self._config.name,
            hint="Check `auth` in the server's entry, and that its sign-in server can be reached.",
            status=401,
            permanent=True,
        )


class _ByItself(_SignedIn, ClientCredentialsOAuthProvider):
    """A program with credentials of its own."""

    def __init__(self, config: MCPServerConfig, tokens: Tokens) -> None:
        auth = config.auth
        assert auth is not None
        # Without an issuer the server would choose who is shown the secret: then only its own origin is.
        url = httpx2.URL(config.url or "")
        super().__init__(
            config.url or "",
            tokens,
            auth.client_id or "",
            auth.client_secret or "",
            "client_secret_post" if auth.token_endpoint_auth_method == "client_secret_post" else "client_secret_basic",  # noqa: S105
            issuer=auth.issuer or f"{url.scheme}://{url.netloc.decode('ascii')}",
        )
        self._config, self._tokens, self._can_sign_in = config, tokens, True


class _InBrowser(_SignedIn):
    """A person in a browser, if one is there; else with the tokens of an earlier time."""

    def __init__(self, config: MCPServerConfig, tokens: Tokens, sign_in: SignIn | None) -> None:
        auth = config.auth
        assert auth is not None
        metadata = OAuthClientMetadata(
            client_name="squidbot",
            redirect_uris=None,
            token_endpoint_auth_method=auth.token_endpoint_auth_method,
        )
        super().__init__(
            config.url or "",
            metadata,
            tokens,
            self._show,
            self._await_answer,
            client_metadata_url=auth.client_metadata_url,
        )
        self._config, self._tokens, self._can_sign_in = config, tokens, sign_in is not None
        self._sign_in = sign_in
        self._issuer = auth.issuer
        self._port = 0
        self._address = ""

    async def _initialize(self) -> None:
        await super()._initialize()
        auth = self._config.auth
        assert auth is not None
        if self._sign_in is not None:
            # A client that registered itself is known together with the address it then named.
            registered = self.context.client_info.redirect_uris if self.context.client_info else None
            self._port = auth.redirect_port or (registered[0].port if registered else None) or free_port()
            self.context.client_metadata.redirect_uris = [AnyUrl(f"http://127.0.0.1:{self._port}{PATH}")]
        if auth.client_id is not None:
            self.context.client_info = OAuthClientInformationFull(
                client_id=auth.client_id,
                client_secret=auth.client_secret,
                redirect_uris=self.context.client_metadata.redirect_uris,
                token_endpoint_auth_method=auth.token_endpoint_auth_method
                or ("client_secret_basic" if auth.client_secret else "none"),
            )

    def _select_authorization_server(self, advertised: list[str]) -> str:
        if self._issuer is None:
            return super()._select_authorization_server(advertised)
        for server in advertised:
            if issuers_match(server, self._issuer):
                return server
        raise OAuthFlowError("the server names other sign-in servers than the `issuer` of the settings")

    async def _show(self, address: str) -> None:
        self._address = address

    async def _await_answer(self) -> AuthorizationCodeResult:
        """Show a person where to sign in, and wait for the browser to come back."""
        if self._sign_in is None:
            raise self._nobody_there()
        state = parse_qs(urlsplit(self._address).query)["state"][-1]
        try:
            async with waiting(self._port, state) as answer:
                await self._sign_in(self._address)
                with anyio.fail_after(_A_PERSONS_PATIENCE):
                    return await answer
        except TimeoutError:
            raise OAuthFlowError(f"nobody signed in within {_A_PERSONS_PATIENCE:g} s") from None
        except OSError:
            raise OAuthFlowError(
                f"port {self._port}, to which the browser must return, is taken; `auth.redirect_port` names another"
            ) from None


def _wants_more(response: httpx2.Response) -> bool:
    """Whether the server wants a sign-in, or one with more rights: it has then not done what was asked."""
    return response.status_code == 401 or (
        response.status_code == 403 and extract_field_from_www_auth(response, "error") == "insufficient_scope"
    )


def _words(error: Exception) -> str:
    """What an error of the SDK says, without the bodies it quotes: they may hold what nobody should see."""
    text = str(error)
    if isinstance(error, OAuthTokenError | OAuthRegistrationError):
        code = _ERROR_CODE.search(text)
        return text.partition(":")[0] + (f": {code[1]}" if code else "")
    return text[:300] if isinstance(error, OAuthFlowError) and "State parameter" not in text else type(error).__name__


class _WithoutTraceback(logging.Filter):
    """Keeps a failed sign-in out of the SDK's log: it is raised as well, and told as ours."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.exc_info is None


logging.getLogger("mcp.client.auth.oauth2").addFilter(_WithoutTraceback())
