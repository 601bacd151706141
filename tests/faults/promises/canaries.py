"""P10: no planted secret is found in the log, the record, an error or on the terminal.

python -m tests.faults.promises.canaries [--each 5]

Fifty secrets in ten forms go to a server that tells them all wherever it can. Commands are run as people run them, with
all of the log; everything that they print, and every file of the state folder, is searched for each secret in each of
its forms. Then redaction is timed. Ends with 1 if a secret is found, or if an ordinary text was changed.
"""

import argparse
import base64
import json
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

from squidbot.core.domain.redaction import Redactor
from tests.faults.scene import ROOT

LETTERS = string.ascii_letters + string.digits


def planted(each: int) -> dict[str, str]:
    """The secrets, `each` of ten forms."""
    chance = random.Random(10)

    def some(length: int, letters: str = LETTERS) -> str:
        return "".join(chance.choices(letters, k=length))

    forms: tuple[Callable[[], str], ...] = (
        lambda: f"ghp_{some(36)}",
        lambda: f"eyJ{some(20)}.eyJ{some(30)}.{some(43)}",
        lambda: f"postgres://app:{some(16)}@db.internal/shop",
        lambda: f"-----BEGIN PRIVATE KEY-----\n{some(64)}\n{some(40)}\n-----END PRIVATE KEY-----",
        lambda: f"sk-proj-{some(40)}",
        lambda: f"AKIA{some(16, string.ascii_uppercase + string.digits)}",
        lambda: some(32, "0123456789abcdef"),
        lambda: f'p@ss/w+rd&{some(12)} %"q',
        lambda: f"Pässwörd-{some(10)}",
        lambda: f"{some(8)}-{some(4)}-{some(12)}",
    )
    return {f"CANARY_{number}_{index}": form() for index in range(each) for number, form in enumerate(forms)}


def shapes(secret: str) -> Iterator[str]:
    """How a secret could be found."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield quote(secret, safe="")
    yield base64.b64encode(secret.encode()).decode().rstrip("=")[:-1]
    yield base64.b64encode(f"user:{secret}".encode()).decode().rstrip("=")[8:-1]


def ran(folder: Path, secrets: dict[str, str], *arguments: str) -> str:
    """All that a command prints."""
    environment = {**os.environ, **secrets, "SQUIDBOT_HOME": str(folder / "state")}
    run = subprocess.run(
        [sys.executable, "-m", "squidbot", "-c", str(folder / "squidbot.json"), *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        timeout=100,
        check=False,
    )
    return (run.stdout + run.stderr).decode(errors="replace")


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--each", type=int, default=5)
    secrets = planted(parser.parse_args().each)
    server = str(Path(__file__).with_name("leaking_server.py"))
    entry = {"command": sys.executable, "args": [server], "env": {name: f"${{{name}}}" for name in secrets}}
    first = next(iter(secrets))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        remote = {
            "url": "http://127.0.0.1:9/mcp",
            "headers": {"Authorization": f"Bearer ${{{first}}}"},
            "max_retries": 0,
        }
        (folder / "squidbot.json").write_text(json.dumps({"tools": {"mcp_servers": {"leak": entry, "away": remote}}}))
        argument = f"note={secrets[first]}"
        commands = (
            ("tools", "call", "leak/tell", argument, "-vv"),
            ("tools", "call", "leak/tell", argument, "--json"),
            ("tools", "call", "leak/fail", argument, "-vv"),
            ("tools", "call", "leak/die", argument, "--json", "-vv"),
            ("tools", "call", "leak/tell", argument, "--role", "designer", "-vv"),
            ("servers", "test", "-vv"),
            ("servers", "get", "leak", "--json"),
            ("doctor", "--json"),
            ("config", "show", "--json"),
            ("audit", "tail", "--json"),
            ("audit", "export", "--format", "csv"),
        )
        said = {" ".join(command[:3]): ran(folder, secrets, *command) for command in commands}
        files = {path.name: path.read_bytes().decode(errors="replace") for path in folder.rglob("*") if path.is_file()}
        kept = json.loads(said["audit tail --json"])
    found = [
        (place, variable, number)
        for place, text in {**said, **files}.items()
        for variable, secret in secrets.items()
        for number, shape in enumerate(shapes(secret))
        if shape in text
    ]
    print(
        f"{len(secrets)} secrets, {len(commands)} commands, {len(files)} files, {len(kept)} records: {len(found)} found"
    )
    for place, variable, number in found[:10]:
        print(f"  {variable} in {place}, form {number}")
    changed = [text for text in benign() if Redactor(list(secrets.values())).text(text) != text]
    print(f"200 ordinary texts, {len(changed)} changed {changed[:2]}")
    print(f"redacting 10 KB: {timed(list(secrets.values())):.0f} µs with {len(secrets)} secrets")
    return 1 if found or changed or not kept else 0


def benign() -> list[str]:
    """Two hundred texts as records have them, none with a secret."""
    chance = random.Random(200)
    words = [
        "the",
        "branch",
        "token",
        "basket",
        "key",
        "order",
        "passes",
        "author",
        "basic",
        "sketch",
        "risk-averse",
        "https://shop.example/p?id=3",
        "a1b2c3d4",
    ]
    words += [
        "feature/SHOP-12",
        "4b825dc642cb6eb9a060e54bf8d69288fbee4904",
        "user@example.com",
        "v1.2.3",
        "docs/keys.md",
    ]
    return [" ".join(chance.choices(words, k=40)) for _ in range(200)]


def timed(secrets: list[str]) -> float:
    """Microseconds for a record of ten kilobytes, the best of many."""
    redactor, text = Redactor(secrets), json.dumps(benign())[:10_240]
    best = float("inf")
    for _ in range(200):
        began = time.perf_counter()
        redactor.text(text)
        best = min(best, time.perf_counter() - began)
    return best * 1e6


if __name__ == "__main__":
    sys.exit(main())
