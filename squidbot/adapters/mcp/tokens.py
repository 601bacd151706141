"""What a sign-in gave, kept in a file of the state folder that only its owner can read."""

import json
import os
import tempfile
from pathlib import Path
from typing import Any, TypeVar

from mcp.shared.auth import OAuthClientInformationFull, OAuthMetadata, OAuthToken, ProtectedResourceMetadata
from pydantic import BaseModel, ValidationError

Model = TypeVar("Model", bound=BaseModel)


def token_path(state: Path, digest: str) -> Path:
    """Where the tokens of the server with this digest are kept."""
    return state / "tokens" / f"{digest}.json"


class Tokens:
    """The SDK's token storage; without a path, it lives as long as the connection.

    Beside what the SDK asks for it keeps when a token ends and where to renew it: without these a token from
    an earlier run could only be tried, and renewed only by a person.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._kept = _read(path)

    async def get_tokens(self) -> OAuthToken | None:
        return self._get("tokens", OAuthToken)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._set(tokens=_plain(tokens))

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._get("client", OAuthClientInformationFull)

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self._set(client=_plain(client_info))

    @property
    def expires_at(self) -> float | None:
        """The time at which the access token ends, if that is known."""
        found = self._kept.get("expires_at")
        return float(found) if isinstance(found, int | float) else None

    @property
    def metadata(self) -> OAuthMetadata | None:
        """What the authorization server said of itself."""
        return self._get("metadata", OAuthMetadata)

    @property
    def resource(self) -> ProtectedResourceMetadata | None:
        """What the server said of who may sign in for it."""
        return self._get("resource", ProtectedResourceMetadata)

    def keep(
        self, *, expires_at: float | None, metadata: OAuthMetadata | None, resource: ProtectedResourceMetadata | None
    ) -> None:
        """Note what belongs to the tokens that were just set."""
        self._set(expires_at=expires_at, metadata=_plain(metadata), resource=_plain(resource))

    def _get(self, key: str, model: type[Model]) -> Model | None:
        try:
            return model.model_validate(self._kept[key])
        except (KeyError, ValidationError):
            return None

    def _set(self, **changes: Any) -> None:
        self._kept |= changes
        if self._path is not None:
            _write(self._path, self._kept)


def _plain(model: BaseModel | None) -> dict[str, Any] | None:
    return None if model is None else model.model_dump(mode="json", exclude_none=True)


def _read(path: Path | None) -> dict[str, Any]:
    """What is kept; a file that is missing or damaged is as good as none: a sign-in makes it anew."""
    if path is None:
        return {}
    try:
        kept = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _write(path: Path, kept: dict[str, Any]) -> None:
    """Replace the file whole, so that no reader and no crash ever finds half of it."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=".new-")  # made readable for its owner alone
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            json.dump(kept, file)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
