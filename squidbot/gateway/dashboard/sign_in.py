"""The sign-in link: a code that is good once and for five minutes, for whoever has the token already."""

import hashlib
import secrets
from dataclasses import asdict

from squidbot.core.domain.happenings import Happening, Topic
from squidbot.core.domain.members import Principal
from squidbot.core.ports import Clock
from squidbot.core.services.admission import Admission
from squidbot.core.services.hub import Hub
from squidbot.gateway.dashboard.seal import Seal

CODE_LIFETIME = 5 * 60
"""Seconds."""
_PURPOSE = "sign-in code"
_USED = "used_code"
_TOPICS: tuple[Topic, ...] = ("tokens",)


class SignIn:
    """Makes codes and takes them, each once. `listen` tells the workers of a machine from each other's used ones."""

    def __init__(self, seal: Seal, *, admission: Admission, clock: Clock, hub: Hub) -> None:
        self._seal = seal
        self._admission = admission
        self._clock = clock
        self._hub = hub
        self._used: dict[str, float] = {}

    async def link(self, base_url: str, token: str) -> str | None:
        """The address that signs in whoever opens it, once; None if `token` is not good for that. Raises NotRecorded."""
        principal = await self._admission.admit(token)
        if principal is None or principal.right is None:
            return None
        return f"{base_url.rstrip('/')}/sign-in?code={await self.code(principal)}"

    async def code(self, principal: Principal) -> str:
        """A code for somebody who was let in. Raises NotRecorded."""
        value = {"who": asdict(principal), "until": self._clock.time() + CODE_LIFETIME, "once": secrets.token_hex(8)}
        return await self._seal.close(_PURPOSE, value)

    async def redeem(self, code: str) -> Principal | None:
        """Who may sign in by this code, None if it was used, is too old, or is none. Raises NotRecorded."""
        kept = await self._seal.open(_PURPOSE, code)
        now = self._clock.time()
        if kept is None or kept["until"] <= now:
            return None
        fingerprint = hashlib.sha256(code.encode()).hexdigest()
        if fingerprint in self._used:
            return None
        self._note(fingerprint, kept["until"])
        self._hub.publish(Happening("tokens", data={_USED: fingerprint, "until": kept["until"]}))
        principal = Principal(**kept["who"])
        return principal if await self._admission.still(principal) else None

    async def listen(self) -> None:
        """Hear of codes that other workers have taken; run it as long as there are any."""
        with self._hub.listen(_TOPICS) as heard:
            async for happening in heard:
                if _USED in happening.data:
                    self._note(str(happening.data[_USED]), float(happening.data["until"]))

    def _note(self, fingerprint: str, until: float) -> None:
        now = self._clock.time()
        self._used = {known: end for known, end in self._used.items() if end > now}
        self._used[fingerprint] = until
