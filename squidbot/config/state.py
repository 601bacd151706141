"""Where squidbot keeps what it must remember: databases, verdicts, tokens, kept results."""

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs


def state_folder(environ: Mapping[str, str] | None = None) -> Path:
    """`SQUIDBOT_HOME`, else the user's state folder. It is named here, not created."""
    home = (os.environ if environ is None else environ).get("SQUIDBOT_HOME")
    if home:
        return Path(home).expanduser().absolute()
    return Path(platformdirs.user_state_dir("squidbot"))
