"""Which hosts the gateway answers as, and which pages may speak to it: what keeps a stranger's page off this machine.

A page of any site can make a browser ask for a name that leads to 127.0.0.1 (DNS rebinding), so the name in `Host` is
held against a list; and a page can post to another origin, so `Origin` is held against a list too.
"""

import ipaddress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from urllib.parse import urlsplit

LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class HostRules:
    """`bound` is the address that is listened on; the lists are the settings' own, globs allowed."""

    bound: str = "127.0.0.1"
    allowed_hosts: tuple[str, ...] = ()
    """With or without a port."""
    allowed_origins: tuple[str, ...] = ()
    """Such as `https://squid.example.com`."""

    def allows_host(self, header: str) -> bool:
        """Whether we answer as this `Host`."""
        split = split_host(header)
        if split is None:
            return False
        name, _ = split
        if name in LOOPBACK or name == self._own:
            return True
        whole = header.lower()
        return any(_fits(glob, name) or _fits(glob, whole) for glob in self.allowed_hosts)

    def allows_origin(self, origin: str, host: str) -> bool:
        """Whether a page of this origin may speak to us, who are asked as `host`."""
        return self.is_own(origin, host) or self._is_loopback(origin) or self._is_listed(origin)

    def is_own(self, origin: str, host: str) -> bool:
        """Whether it is a page of our own."""
        scheme, name, port = _origin(origin)
        split = split_host(host)
        if split is None or scheme not in ("http", "https"):
            return False
        default = 443 if scheme == "https" else 80
        return (name, port or default) == (split[0], split[1] or default)

    @property
    def _own(self) -> str | None:
        """The address we listen on, if it is one and not all of them: an address cannot be rebound."""
        try:
            address = ipaddress.ip_address(self.bound.strip("[]"))
        except ValueError:
            return self.bound.lower()
        return None if address.is_unspecified else str(address)

    def _is_loopback(self, origin: str) -> bool:
        scheme, name, _ = _origin(origin)
        return scheme in ("http", "https") and name in LOOPBACK

    def _is_listed(self, origin: str) -> bool:
        return any(_fits(glob.rstrip("/"), origin.lower()) for glob in self.allowed_origins)


def split_host(header: str) -> tuple[str, int | None] | None:
    """Name and port of a `Host`; None for what is none."""
    if not header or not header.isascii() or any(character in header for character in "/\\@?#, \t"):
        return None
    try:
        parts = urlsplit(f"//{header}")
        name, port = parts.hostname, parts.port
    except ValueError:
        return None
    return (name.rstrip("."), port) if name else None


def _origin(text: str) -> tuple[str, str, int | None]:
    """Scheme, name and port; nothing for what is no origin, such as `null`."""
    try:
        parts = urlsplit(text)
        if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
            return "", "", None
        return parts.scheme.lower(), (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return "", "", None


def _fits(glob: str, text: str) -> bool:
    return fnmatchcase(text, glob.lower())
