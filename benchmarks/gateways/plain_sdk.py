"""The plain SDK on both sides: its low-level server over streamable HTTP, its client over stdio.

python -m benchmarks.gateways.plain_sdk PORT COMMAND [ARG ...]
"""

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import mcp_types as types
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.server import Server
from mcp.server.context import ServerRequestContext

Context = ServerRequestContext[Client, Any]


@asynccontextmanager
async def upstream(_server: "Server[Client]") -> AsyncIterator[Client]:
    parameters = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])
    async with Client(parameters, mode="legacy", read_timeout_seconds=60) as client:
        yield client


async def list_tools(context: Context, _params: Any) -> types.ListToolsResult:
    return await context.lifespan_context.list_tools()


async def call_tool(context: Context, params: types.CallToolRequestParams) -> types.CallToolResult:
    return await context.lifespan_context.call_tool(params.name, params.arguments or {})


def main() -> None:
    server: Server[Client] = Server("plain", lifespan=upstream, on_list_tools=list_tools, on_call_tool=call_tool)
    uvicorn.run(
        server.streamable_http_app(json_response=True),
        host="127.0.0.1",
        port=int(sys.argv[1]),
        log_level="warning",
        access_log=False,
    )


if __name__ == "__main__":
    main()
