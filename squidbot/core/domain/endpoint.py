"""How the MCP endpoint behaves, as numbers that somebody may want otherwise."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Bounds and patience of the MCP endpoint; times in seconds."""

    version: str = "0"
    """What we call our own version towards clients."""
    gateway: str = "gateway"
    """Names this process among all that share one database: nobody else hears of it but the others."""
    largest_body: int = 4 * 2**20
    patience: float = 15.0
    """For so long an answer's headers wait for its end, and so often a silent stream is kept alive."""
    answer_within: float = 300.0
    """For a client's answer to what a server asks of it."""
    session_lifetime: float = 86_400.0
    session_idle: float = 1_800.0
    most_sessions: int = 10_000
    """Sessions of the handshake era that are remembered; one that was forgotten only loses its log level."""
    most_streams: int = 1_000
    page: int = 1_000
    """Items of one page of a list."""
    longest_description: int = 4_096
