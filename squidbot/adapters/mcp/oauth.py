"""Signs in at remote servers by OAuth, and keeps the tokens."""

from pathlib import Path

import httpx2

from squidbot.adapters.mcp.transports import Opening
from squidbot.config.schema import MCPServerConfig


def auth_for(config: MCPServerConfig, opening: Opening) -> httpx2.Auth | None:
    """How requests to this server are signed, if the settings ask for OAuth."""
    del config, opening
    return None


def forget(config: MCPServerConfig, state: Path) -> bool:
    """Drop the tokens kept for this server; whether there were any."""
    path = state / "tokens" / f"{config.digest}.json"
    existed = path.exists()
    path.unlink(missing_ok=True)
    return existed
