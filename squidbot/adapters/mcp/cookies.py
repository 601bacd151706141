"""The cookies of one server: kept, since load balancers find a session by them, but only a few and small ones."""

from http.cookiejar import Cookie, CookieJar
from typing import Any

from loguru import logger

_MOST = 4_096
"""Characters of all names and values together; they are sent with every request."""


class SmallJar(CookieJar):
    """Takes what fits, and never raises over what a server sets."""

    def extract_cookies(self, response: Any, request: Any) -> None:
        """Raised into the SDK, an error over a cookie would end every call of the server."""
        try:
            super().extract_cookies(response, request)
        except Exception as error:  # noqa: BLE001 - whatever the standard library finds in a foreign header
            logger.debug("a cookie was not understood: {!r}", error)

    def set_cookie(self, cookie: Cookie) -> None:
        others = sum(_size(kept) for kept in self if (kept.name, kept.path) != (cookie.name, cookie.path))
        if others + _size(cookie) <= _MOST:
            super().set_cookie(cookie)


def _size(cookie: Cookie) -> int:
    return len(cookie.name) + len(cookie.value or "")
