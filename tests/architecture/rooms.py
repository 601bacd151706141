"""The table of rooms as data: what each room may import, and where a rule has its exception."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Room:
    """A part of the house: which parts of squidbot and which libraries it may import, beside the standard library."""

    own: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()


_CORE = "squidbot.core"
_SCHEMA = "squidbot.config.schema"
_SERVER = Room(libraries=("anyio", "httpx2", "mcp", "mcp_types", "platformdirs", "pydantic", "starlette", "uvicorn"))

ROOMS: dict[str, Room] = {
    "squidbot.core": Room(),
    "squidbot.core.domain": Room(),
    "squidbot.core.ports": Room(own=("squidbot.core.domain",)),
    "squidbot.core.services": Room(own=(_CORE,), libraries=("anyio",)),
    "squidbot.config": Room(
        own=("squidbot.core.domain",), libraries=("platformdirs", "pydantic", "pydantic_core", "yaml")
    ),
    "squidbot.adapters": Room(),
    "squidbot.adapters.mcp": Room(
        own=(_CORE, _SCHEMA, "squidbot._version"),
        libraries=("anyio", "httpx2", "loguru", "mcp", "mcp_types", "pydantic", "websockets"),
    ),
    # docs/decisions/0008-a-client-works-alone.md
    "squidbot.adapters.mcp.client": Room(
        own=(
            _CORE,
            _SCHEMA,
            "squidbot.adapters.mcp",
            "squidbot.adapters.registry.memory",
            "squidbot.adapters.schemas.checker",
        ),
        libraries=("anyio", "loguru"),
    ),
    "squidbot.adapters.registry": Room(own=(_CORE,)),
    "squidbot.adapters.schemas": Room(own=(_CORE,), libraries=("anyio", "jsonschema", "referencing")),
    "squidbot.adapters.store": Room(own=(_CORE, _SCHEMA), libraries=("alembic", "anyio", "loguru", "sqlalchemy")),
    "squidbot.adapters.limits": Room(own=(_CORE, _SCHEMA), libraries=("anyio", "loguru", "redis")),
    "squidbot.adapters.identity": Room(own=(_CORE, _SCHEMA), libraries=("anyio", "httpx2", "jwt", "loguru")),
    "squidbot.adapters.relay": Room(own=(_CORE,), libraries=("anyio", "loguru", "redis")),
    "squidbot.adapters.models": Room(
        own=(_CORE, _SCHEMA), libraries=("anthropic", "anyio", "httpx2", "loguru", "openai")
    ),
    "squidbot.adapters.system": Room(own=(_CORE,)),
    "squidbot.adapters.telemetry": Room(
        own=(_CORE, _SCHEMA),
        libraries=("anyio", "httpx2", "loguru", "opentelemetry", "prometheus_client"),
    ),
    "squidbot.gateway": Room(
        own=(_CORE,),
        libraries=(
            "anyio",
            "jinja2",
            "markupsafe",
            "mcp.server",
            "mcp.shared",
            "mcp_types",
            "pydantic",
            "starlette",
            "uvicorn",
        ),
    ),
    "squidbot.integrations": Room(
        own=(_CORE,), libraries=("agents", "agno", "langchain_core", "pydantic_ai", "pydantic_core")
    ),
    "squidbot.builders": Room(
        own=(
            "squidbot._version",
            "squidbot.adapters",
            "squidbot.config",
            "squidbot.core",
            "squidbot.gateway",
            "squidbot.integrations",
        ),
    ),
    # Beside the builders only types, for those who are handed a part.
    "squidbot.container": Room(
        own=("squidbot.adapters", "squidbot.builders", "squidbot.config", "squidbot.core", "squidbot.gateway"),
        libraries=("dependency_injector",),
    ),
    "squidbot.cli": Room(
        own=("squidbot._version", "squidbot.config", "squidbot.container", "squidbot.core", "squidbot.practice"),
        libraries=("anyio", "click", "rich"),
    ),
    "squidbot.practice": Room(libraries=("anyio", "starlette", "uvicorn")),
    "squidbot.servers": _SERVER,
    "squidbot.__main__": Room(own=("squidbot._version", "squidbot.cli")),
    "squidbot._version": Room(),
    # The public names, each loaded on first use.
    "squidbot": Room(
        own=("squidbot._version", "squidbot.adapters", "squidbot.config", "squidbot.container", "squidbot.core")
    ),
}

MAY_IMPORT_LATE = (
    "squidbot.cli",
    "squidbot.__main__",
    "squidbot.builders",
    "squidbot.adapters.models",
    "squidbot.adapters.telemetry",
    "squidbot.integrations",
    # jsonschema takes 80 ms to load, which a command that checks no schema need not pay.
    "squidbot.adapters.schemas",
    # The SDK takes longer to load than a call over a pipe takes, and such a call can do without it (decision 17).
    "squidbot.adapters.mcp.catalogue",
    "squidbot.adapters.mcp.conversation",
    "squidbot.adapters.mcp.opening",
    "squidbot.adapters.mcp.transports.table",
    # Alembic is needed only when the tables are not up to date, and takes longer to load than a command takes.
    "squidbot.adapters.store.migrating",
    # Programs of their own, started anew each time: a client waits for them.
    "squidbot.servers",
)

MAY_PRINT = ("squidbot.cli", "squidbot.__main__", "squidbot.practice.__main__", "squidbot.servers")
OWNS_TASKS = ("squidbot.adapters.mcp.supervisor", "squidbot.gateway.wire")
SHELLS = (
    "os.system",
    "os.popen",
    "asyncio.create_subprocess_shell",
    "subprocess.getoutput",
    "subprocess.getstatusoutput",
)
SHAPELESS = ("Manager", "Helper", "Helpers", "Util", "Utils", "Impl", "Base")


def room_of(module: str) -> str | None:
    """The innermost room that a module is in; the public names of `squidbot` itself are a room of one module."""
    inside = [name for name in ROOMS if module == name or (name != "squidbot" and module.startswith(f"{name}."))]
    return max(inside, key=len, default=None)
