"""A program that connects the servers of a settings file and then does nothing: something to kill.

python host.py SETTINGS
"""

import json
import sys
from pathlib import Path

import anyio

from squidbot import MCPClient, MCPConfig


async def main(config: MCPConfig) -> None:
    """Connect, say so in one line, and wait for ever."""
    async with MCPClient(config) as client:
        connected = await client.connect_all()
        print(json.dumps(connected), flush=True)
        await anyio.sleep_forever()


if __name__ == "__main__":
    anyio.run(main, MCPConfig.from_dict(json.loads(Path(sys.argv[1]).read_text("utf-8"))))
