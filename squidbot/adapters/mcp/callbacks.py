"""What a server may ask of us and tell us, between the SDK's typed callbacks and plain mappings of ours."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import mcp_types as types
from loguru import logger
from mcp.client.session import ClientRequestContext
from pydantic import BaseModel

from squidbot._version import __version__
from squidbot.core.domain.servers import ServerEvent, ServerLog

OnLog: TypeAlias = Callable[[ServerLog], None]
OnEvent: TypeAlias = Callable[[ServerEvent], None]
Answer: TypeAlias = Callable[[str, Mapping[str, Any]], Awaitable[Mapping[str, Any] | None]]
"""Answers a server (its name, its params as on the wire) with a result as on the wire; None declines."""


class _NotOurs(logging.Filter):
    """The SDK's session logs a traceback for each notification that it cannot read; those are counted elsewhere."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not (record.levelno <= logging.WARNING and record.module == "session")


logging.getLogger("client").addFilter(_NotOurs())

CLIENT = types.Implementation(name="squidbot", version=__version__)


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Whoever wants to hear from servers, and whoever answers them; what is absent is not offered to them."""

    on_log: OnLog | None = None
    on_event: OnEvent | None = None
    sampling: Answer | None = None
    elicitation: Answer | None = None
    roots: Sequence[str | Path] | None = None

    def capabilities(self, config: Mapping[str, Any] | None) -> dict[str, Any]:
        """What we offer to a server, as on the wire; `config` reaches it as an experimental capability."""
        offered: dict[str, Any] = {}
        if self.sampling is not None:
            offered["sampling"] = {}
        if self.elicitation is not None:
            offered["elicitation"] = {"form": {}, "url": {}}
        if self.roots is not None:
            offered["roots"] = {"listChanged": True}
        if config is not None:
            offered["experimental"] = {"config": dict(config)}
        return offered

    def event(self, event: ServerEvent) -> None:
        """Tell whoever subscribed; their fault is not the connection's."""
        if self.on_event is not None:
            try:
                self.on_event(event)
            except Exception as error:  # noqa: BLE001 - a listener's fault ends nothing
                logger.warning("a listener for events failed: {!r}", error)

    def log(self, entry: ServerLog) -> None:
        """Hand a server's log message on."""
        if self.on_log is not None:
            try:
                self.on_log(entry)
            except Exception as error:  # noqa: BLE001 - a listener's fault ends nothing
                logger.warning("a listener for log messages failed: {!r}", error)


def session_callbacks(callbacks: Callbacks, server: str) -> dict[str, Any]:
    """The SDK's keyword arguments for a session with `server`."""

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        callbacks.log(ServerLog(server=server, level=params.level, data=params.data, logger=params.logger))

    async def on_message(message: object) -> None:
        if isinstance(message, Exception):
            callbacks.event(ServerEvent(server, "exception", error=message))
        elif isinstance(message, BaseModel):
            wire = message.model_dump(mode="json", by_alias=True, exclude_none=True)
            callbacks.event(
                ServerEvent(server, "notification", method=wire.get("method"), params=wire.get("params") or {})
            )

    given: dict[str, Any] = {"logging_callback": on_log, "message_handler": on_message, "client_info": CLIENT}
    if callbacks.sampling is not None:
        given["sampling_callback"] = _sampling(callbacks.sampling, server)
    if callbacks.elicitation is not None:
        given["elicitation_callback"] = _elicitation(callbacks.elicitation, server)
    if callbacks.roots is not None:
        given["list_roots_callback"] = _roots(callbacks.roots)
    return given


def _sampling(answer: Answer, server: str) -> Callable[..., Awaitable[Any]]:
    async def sample(context: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
        del context
        result = await _asked(answer, server, params)
        if result is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message="Sampling was declined")
        return _typed(result, types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult)

    return sample


def _elicitation(answer: Answer, server: str) -> Callable[..., Awaitable[Any]]:
    async def elicit(context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        del context
        result = await _asked(answer, server, params)
        return _typed({"action": "decline"} if result is None else result, types.ElicitResult)

    return elicit


def _roots(roots: Sequence[str | Path]) -> Callable[..., Awaitable[Any]]:
    listed = [
        types.Root(uri=root if isinstance(root, str) and "://" in root else Path(root).absolute().as_uri())  # type: ignore[arg-type]
        for root in roots
    ]

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(roots=listed)

    return list_roots


async def _asked(answer: Answer, server: str, params: BaseModel) -> Mapping[str, Any] | types.ErrorData | None:
    """What the program answers; a fault of its own is not told to the server, and never raised into a call."""
    try:
        return await answer(server, params.model_dump(mode="json", by_alias=True, exclude_none=True))
    except Exception as error:  # noqa: BLE001 - whoever answers may have bugs
        logger.bind(server=server).warning("answering server {!r} failed: {!r}", server, error)
        return types.ErrorData(code=types.INTERNAL_ERROR, message="the client could not answer")


def _typed(result: Mapping[str, Any] | types.ErrorData, model: type[BaseModel]) -> BaseModel:
    if isinstance(result, types.ErrorData):
        return result
    try:
        return model.model_validate(dict(result))
    except (TypeError, ValueError) as error:
        logger.warning("an answer to a server is not valid: {}", str(error).split("\n", 1)[0])
        return types.ErrorData(code=types.INTERNAL_ERROR, message="the client's answer is not valid")
