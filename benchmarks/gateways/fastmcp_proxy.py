"""FastMCP's proxy, mounted once for the server; runs in FastMCP's own environment.

python fastmcp_proxy.py PORT COMMAND [ARG ...]
"""

import sys

from fastmcp import Client, FastMCP  # type: ignore[import-not-found,unused-ignore]
from fastmcp.client.transports import StdioTransport  # type: ignore[import-not-found,unused-ignore]
from fastmcp.server import create_proxy  # type: ignore[import-not-found,unused-ignore]


def main() -> None:
    client = Client(StdioTransport(sys.argv[2], sys.argv[3:], keep_alive=True))
    gateway = FastMCP("gateway")
    gateway.mount(create_proxy(client))
    gateway.run(
        transport="http",
        host="127.0.0.1",
        port=int(sys.argv[1]),
        show_banner=False,
        uvicorn_config={"access_log": False},
    )


if __name__ == "__main__":
    main()
