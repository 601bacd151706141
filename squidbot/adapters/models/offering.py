"""Which tools a provider is offered: each in a form that it takes, without those that it does not take at all."""

from collections.abc import Sequence
from dataclasses import replace

from squidbot.adapters.models.faults import refused_tool
from squidbot.core.domain.conversation import ModelTool
from squidbot.core.domain.providers import Provider, UnfitSchema, fit_schema


class Offer:
    """Remembers what a provider will not take, so that it is left out from then on, alone and with a word."""

    def __init__(self, provider: Provider) -> None:
        self._provider: Provider = provider
        self._refused: dict[str, str] = {}
        self._untold: list[str] = []

    def fit(self, tools: Sequence[ModelTool]) -> list[ModelTool]:
        """The tools in the provider's form."""
        fit = []
        for tool in tools:
            if tool.name in self._refused:
                continue
            try:
                fit.append(replace(tool, parameters=fit_schema(tool.parameters, self._provider)))
            except UnfitSchema as error:
                self._refuse(tool.name, str(error))
        return fit

    def dropped(self, error: Exception, offered: Sequence[ModelTool]) -> bool:
        """Whether the provider refused one of the tools; it is left out, and the rest can be offered again."""
        found = refused_tool(error, [tool.name for tool in offered])
        if found is None:
            return False
        self._refuse(*found)
        return True

    def notes(self) -> list[str]:
        """What has not been said yet."""
        told, self._untold = self._untold, []
        return told

    def _refuse(self, name: str, reason: str) -> None:
        self._refused[name] = reason
        self._untold.append(f"the tool {name!r} is left out: {self._provider} does not take it ({reason})")
