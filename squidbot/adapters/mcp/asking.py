"""Between the SDK's typed callbacks and plain mappings of ours: who answers what a server asks."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import mcp_types as types
from loguru import logger
from mcp.client.session import ClientRequestContext
from pydantic import BaseModel

from squidbot.adapters.mcp.attribution import UnderWay, concerned
from squidbot.adapters.mcp.callbacks import CLIENT, Answer, Callbacks
from squidbot.core.domain.errors import Declined
from squidbot.core.domain.servers import ServerEvent, ServerLog
from squidbot.core.ports import Question


def session_callbacks(callbacks: Callbacks, server: str, under_way: UnderWay | None = None) -> dict[str, Any]:
    """The SDK's keyword arguments for a session with `server`."""

    async def on_log(params: types.LoggingMessageNotificationParams) -> None:
        await callbacks.tell(ServerLog(server=server, level=params.level, data=params.data, logger=params.logger))

    async def on_message(message: object) -> None:
        if isinstance(message, Exception):
            callbacks.event(ServerEvent(server, "exception", error=message))
        elif isinstance(message, BaseModel):
            wire = message.model_dump(mode="json", by_alias=True, exclude_none=True)
            callbacks.event(
                ServerEvent(server, "notification", method=wire.get("method"), params=wire.get("params") or {})
            )

    given: dict[str, Any] = {
        "logging_callback": on_log,
        "message_handler": on_message,
        "client_info": types.Implementation.model_validate(CLIENT),
    }
    asking = _Asking(callbacks, server, under_way or UnderWay())
    if callbacks.sampling is not None or callbacks.converses:
        given["sampling_callback"] = asking.sample
    if callbacks.elicitation is not None or callbacks.converses:
        given["elicitation_callback"] = asking.elicit
    if callbacks.roots is not None:
        given["list_roots_callback"] = _roots(callbacks.roots)
    return given


class _Asking:
    """Finds out who answers a server's question: the one whose call it belongs to, else the program itself."""

    def __init__(self, callbacks: Callbacks, server: str, under_way: UnderWay) -> None:
        self._callbacks = callbacks
        self._server = server
        self._under_way = under_way

    async def sample(self, context: ClientRequestContext, params: types.CreateMessageRequestParams) -> Any:
        """Answer `sampling/createMessage`."""
        del context
        result, reason = await self._answered("sampling", self._callbacks.sampling, params)
        if result is None:
            return types.ErrorData(code=types.INVALID_REQUEST, message=f"Sampling was declined{reason}")
        return _typed(result, types.CreateMessageResultWithTools if params.tools else types.CreateMessageResult)

    async def elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> Any:
        """Answer `elicitation/create`."""
        del context
        result, _ = await self._answered("elicitation", self._callbacks.elicitation, params)
        return _typed({"action": "decline"} if result is None else result, types.ElicitResult)

    async def _answered(
        self, question: Question, program: Answer | None, params: BaseModel
    ) -> tuple[Mapping[str, Any] | types.ErrorData | None, str]:
        """The answer, and in words why there is none; a fault in answering is not told to the server."""
        wire = params.model_dump(mode="json", by_alias=True, exclude_none=True)
        addressee = concerned()
        try:
            if addressee.counterpart is not None:
                answer = None
                with self._under_way.asking(addressee.counterpart):
                    answer = await addressee.counterpart.ask(question, self._server, wire)
                return answer, ": the client that called did not answer"
            if addressee.reason is None and program is not None:
                return await program(self._server, wire), ""
            reason = addressee.reason or "no call of anybody who could answer is under way"
            self._under_way.declined += 1
            await self._callbacks.unclaimed(question, self._server, wire, reason)
        except Declined as declined:
            return None, f": {declined}"
        except Exception as error:  # noqa: BLE001 - whoever answers may have bugs
            logger.bind(server=self._server).warning("answering server {!r} failed: {!r}", self._server, error)
            return types.ErrorData(code=types.INTERNAL_ERROR, message="the client could not answer"), ""
        return None, f": {reason}"


def _roots(roots: Sequence[str | Path]) -> Callable[..., Awaitable[Any]]:
    listed = [
        types.Root(uri=root if isinstance(root, str) and "://" in root else Path(root).absolute().as_uri())  # type: ignore[arg-type]
        for root in roots
    ]

    async def list_roots(context: ClientRequestContext) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(roots=listed)

    return list_roots


def _typed(result: Mapping[str, Any] | types.ErrorData, model: type[BaseModel]) -> BaseModel:
    if isinstance(result, types.ErrorData):
        return result
    try:
        return model.model_validate(dict(result))
    except (TypeError, ValueError) as error:
        logger.warning("an answer to a server is not valid: {}", str(error).split("\n", 1)[0])
        return types.ErrorData(code=types.INTERNAL_ERROR, message="the client's answer is not valid")
