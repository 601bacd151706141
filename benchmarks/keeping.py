"""Keeps what was measured as JSON in benchmarks/results, with the machine that it was measured on."""

import json
import platform
from os import sched_getaffinity
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks/results"


def keep(name: str, found: dict[str, Any]) -> None:
    """Write `found` to results/NAME.json."""
    machine = {
        "python": platform.python_version(),
        "system": platform.system(),
        "cores": len(sched_getaffinity(0)),
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"machine": machine, **found}, indent=1) + "\n")
