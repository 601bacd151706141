"""Limits and alert thresholds of the settings, as the core counts by them."""

from squidbot.config.schema import AlertSettings, LimitSettings, Settings
from squidbot.core.domain.alerts import AlertThresholds
from squidbot.core.domain.limits import Limit, rate_of


def limits_of_settings(settings: Settings) -> list[Limit]:
    """The limits that stand in the settings, in addition to the default of each role."""
    return [_limit(limit) for limit in settings.limits]


def thresholds_of(settings: AlertSettings) -> AlertThresholds:
    """From when on something is unusual."""
    rules = settings.rules
    return AlertThresholds(
        burst=(rules.burst.calls, rules.burst.seconds) if rules.burst.enabled else None,
        refusals=(rules.refusals.refusals, rules.refusals.seconds) if rules.refusals.enabled else None,
        first_use=rules.first_use.enabled,
        error_rate=(rules.error_rate.rate, rules.error_rate.calls, rules.error_rate.seconds)
        if rules.error_rate.enabled
        else None,
    )


def _limit(limit: LimitSettings) -> Limit:
    rate = rate_of(limit.rate) if limit.rate is not None else None
    # Without a burst a role may have at once what it may have in a second.
    burst = limit.burst or max(1, int(rate or 1))
    return Limit(limit.role, limit.server, limit.tool, rate, burst, limit.concurrency)
