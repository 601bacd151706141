"""Posts alerts to a webhook."""

from dataclasses import asdict
from urllib.parse import urlsplit

import anyio
import httpx2
from loguru import logger

from squidbot.core.domain.alerts import Alert

_DEADLINE = 5.0
_TRIES = 3


class AlertWebhook:
    """Satisfies `AlertSink`: posts each alert as JSON. The url may hold a secret and is never said, only its host."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._host = urlsplit(url).hostname

    async def send(self, alert: Alert) -> None:
        """Tell it, trying again a little later if need be; what does not arrive is named in the log."""
        document = {**asdict(alert), "text": f"squidbot: {alert.message}"}
        reason = ""
        async with httpx2.AsyncClient(timeout=_DEADLINE, follow_redirects=False, trust_env=False) as client:
            for attempt in range(_TRIES):
                await anyio.sleep(attempt**2 * 0.5)
                try:
                    answer = await client.post(self._url, json=document)
                except httpx2.HTTPError as error:
                    reason = type(error).__name__
                    continue
                if answer.is_success:
                    return
                reason = f"status {answer.status_code}"
                if answer.status_code < 500 and answer.status_code != 429:
                    break
        logger.warning("the webhook at {} did not take an alert ({}): {}", self._host, reason, alert.message)
