"""What was unusual, and the way to the calls behind it."""

from dataclasses import dataclass
from urllib.parse import urlencode

from starlette.responses import Response

from squidbot.core.domain.alerts import Alert
from squidbot.gateway.dashboard.gate import Visit, prefix_of

_NEWEST = 200


@dataclass(frozen=True, slots=True)
class Shown:
    """An alert, and where to look."""

    timestamp: str
    rule: str
    message: str
    role: str | None
    link: str
    link_words: str


async def alerts(visit: Visit) -> Response:
    """The newest alerts."""
    prefix = prefix_of(visit.request)
    found = [_shown(alert, prefix) for alert in await visit.desk.alerts(visit.who, newest=_NEWEST)]
    return await visit.page("alerts.html", "alerts", topics="alert", alerts=found)


def _shown(alert: Alert, prefix: str) -> Shown:
    record = alert.details.get("record")
    if isinstance(record, str):
        link, words = f"{prefix}/call?{urlencode({'id': record})}", "the call"
    else:
        which = {"role": alert.role, "server": alert.server, "tool": alert.tool}
        asked = {name: value for name, value in which.items() if value}
        if alert.rule == "refusals":
            asked["outcome"] = "refused"
        link, words = f"{prefix}/calls?{urlencode(asked, errors='replace')}", "the calls"
    return Shown(alert.timestamp, alert.rule, alert.message, alert.role, link, words)
