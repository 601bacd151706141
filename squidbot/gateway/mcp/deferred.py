"""Packages whose own first lines run only when somebody wants something of them, and not for each of their modules."""

import importlib.util
import sys
import threading
from types import ModuleType
from typing import Any

_one_at_a_time = threading.RLock()


class _Deferred(ModuleType):
    """A package that is not run yet. Its modules are found all the same; any other name of it runs it first."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with _one_at_a_time:
            if type(self) is _Deferred:
                self.__class__ = ModuleType  # type: ignore[assignment]
                spec = self.__spec__
                assert spec is not None
                assert spec.loader is not None
                spec.loader.exec_module(self)
        return getattr(self, name)


def defer(*packages: str) -> None:
    """Put off what these packages do when they are imported; outer ones first. Nothing happens to those that have done it."""
    for name in packages:
        if name in sys.modules:
            continue
        spec = importlib.util.find_spec(name)
        if spec is None:
            continue
        package = _Deferred(name)
        package.__spec__, package.__loader__ = spec, spec.loader
        package.__package__, package.__file__ = name, spec.origin
        package.__path__ = spec.submodule_search_locations or []
        sys.modules[name] = package
        outer, _, inner = name.rpartition(".")
        if outer:
            setattr(sys.modules[outer], inner, package)
