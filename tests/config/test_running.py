"""One gateway per state folder, and the others find it."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from squidbot.config.running import RunningGateway, only_gateway, running_gateway
from squidbot.core.domain.errors import ConfigError


def test_a_running_gateway_is_found_and_gone_when_it_ends(tmp_path: Path) -> None:
    """`status`, `serve` and `connect` ask it."""
    assert running_gateway(tmp_path) is None
    with only_gateway(tmp_path) as announce:
        assert running_gateway(tmp_path) is None
        announce("http://127.0.0.1:1234")
        assert running_gateway(tmp_path) == RunningGateway("http://127.0.0.1:1234", os.getpid())
        assert stat.S_IMODE((tmp_path / "gateway.json").stat().st_mode) == 0o600
    assert running_gateway(tmp_path) is None


def test_a_second_gateway_on_the_same_folder_is_told_so(tmp_path: Path) -> None:
    """Two that write one chain under one identity would be taken for one."""
    with only_gateway(tmp_path) as announce:
        announce("http://127.0.0.1:1234")
        with pytest.raises(ConfigError, match=r"http://127\.0\.0\.1:1234") as caught, only_gateway(tmp_path):
            raise AssertionError("two gateways")
        assert "SQUIDBOT_HOME" in str(caught.value.hint)
        assert running_gateway(tmp_path) is not None


def test_what_a_killed_gateway_leaves_behind_does_not_count(tmp_path: Path) -> None:
    """After kill -9 the next start must not wait for anybody."""
    script = (
        "import os, sys, pathlib\n"
        "from squidbot.config.running import only_gateway\n"
        "with only_gateway(pathlib.Path(sys.argv[1])) as announce:\n"
        "    announce('http://127.0.0.1:1')\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert done.returncode == -9
    assert (tmp_path / "gateway.json").exists()
    assert running_gateway(tmp_path) is None
    with only_gateway(tmp_path):
        assert not (tmp_path / "gateway.json").exists()
