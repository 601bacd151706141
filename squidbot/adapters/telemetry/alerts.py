"""Where alerts go beside the store: the log."""

from loguru import logger

from squidbot.core.domain.alerts import Alert


class AlertLog:
    """Satisfies `AlertSink`: a warning in the log."""

    async def send(self, alert: Alert) -> None:
        # That somebody does something for the first time is worth knowing, not worth a warning each time.
        logger.log("INFO" if alert.rule == "first_use" else "WARNING", "alert {}: {}", alert.rule, alert.message)
