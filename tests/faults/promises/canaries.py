"""P10: no planted secret is found in the log, the record, an error, on the terminal, in the dashboard or a command line.

python -m tests.faults.promises.canaries [--each 5]

Fifty secrets in ten forms go to a server that tells them all wherever it can, whole and in two parts. Commands are run as
people run them, with all of the log; then a gateway, whose answers, API and dashboard are read. Everything that they say,
every file of the state folder, and every command line of the machine is searched for each secret in each of its forms.
Then redaction is timed. Ends with 1 if a secret is found, an ordinary record was changed, or redaction is too slow.
"""

import argparse
import base64
import html
import json
import os
import random
import string
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx2

from squidbot.core.domain.redaction import Redactor
from tests.faults.scene import ROOT
from tests.fixtures.gateway import gateway, headers, request

PROMISED = 100.0
"""Microseconds for a record of ten kilobytes."""
WAIT = 60.0
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
    yield html.escape(secret)
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


def through_a_gateway(folder: Path, secrets: dict[str, str]) -> dict[str, str]:
    """All that a gateway says to a client, to a program and to a browser, and the command lines meanwhile."""
    settings = folder / "squidbot.json"
    said: dict[str, str] = {}
    with gateway(folder, json.loads(settings.read_text()), "-vv", env=secrets, state=folder / "state") as running:
        token = running.token(role="leaky")
        with httpx2.Client(base_url=running.url, trust_env=False, timeout=60) as http:
            listed = request("tools/list", {})
            for tool in ("tell", "fail", "die", "tell"):
                deadline = time.monotonic() + WAIT
                while f"mcp_leak_{tool}" not in http.post("/mcp", json=listed, headers=headers(token, listed)).text:
                    assert time.monotonic() < deadline, f"{tool} is never listed"
                    time.sleep(0.1)
                call = request("tools/call", {"name": f"mcp_leak_{tool}", "arguments": {"note": next(iter(secrets))}})
                said[f"/mcp {tool}"] = http.post("/mcp", json=call, headers=headers(token, call)).text
            said["/mcp tools/list"] = http.post("/mcp", json=listed, headers=headers(token, listed)).text
            opened = request("server/discover", {})
            said["/mcp server/discover"] = http.post("/mcp", json=opened, headers=headers(token, opened)).text
            bearer = {"Authorization": f"Bearer {running.admin}"}
            records = http.get("/api/v1/calls", headers=bearer).json()
            last = [record["id"] for record in (records if isinstance(records, list) else records["records"])]
            api = ["status", "settings", "servers", "servers/leak", "servers/away", "tools", "tools/mcp_leak_tell"]
            api += ["roles", "roles/leaky", "calls", "alerts", "tokens", *(f"calls/{name}" for name in last)]
            pages = ["/", "/servers", "/servers?name=leak", "/tools", "/tool?server=leak&tool=tell", "/roles", "/calls"]
            pages += ["/alerts", "/tokens", *(f"/call?id={name}" for name in last)]
            for path in (*(f"/api/v1/{name}" for name in api), "/metrics", "/readyz"):
                said[path] = http.get(path, headers=bearer).text
            browser = {"Origin": running.url, "Sec-Fetch-Site": "same-origin"}
            assert http.post("/sign-in", data={"token": running.admin}, headers=browser).status_code == 303
            for path in pages:
                answer = http.get(path)
                assert answer.status_code == 200, f"{path}: {answer.status_code}"
                said[f"page {path}"] = answer.text
        said["command lines"] = command_lines()
        running.end()
    return said


def command_lines() -> str:
    """Of all processes."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(path.read_bytes().decode(errors="replace"))
    return "\n".join(lines)


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
        document: dict[str, Any] = {"tools": {"mcp_servers": {"leak": entry, "away": remote}}}
        document["roles"] = {"leaky": {"tools": {"leak": ["*"]}}}
        (folder / "squidbot.json").write_text(json.dumps(document))
        argument = f"note={secrets[first]}"
        commands = (
            ("tools", "call", "leak/tell", argument, "-vv"),
            ("tools", "call", "leak/tell", argument, "--json"),
            ("tools", "call", "leak/fail", argument, "-vv"),
            ("tools", "call", "leak/die", argument, "--json", "-vv"),
            ("tools", "call", "leak/tell", argument, "--role", "designer", "-vv"),
            ("tools", "list", "--json"),
            ("tools", "show", "leak/tell"),
            ("servers", "test", "-vv"),
            ("servers", "get", "leak", "--json"),
            ("doctor", "--json"),
            ("config", "show", "--json"),
            ("audit", "tail", "--json"),
            ("audit", "export", "--format", "csv"),
        )
        said = {" ".join(command[:3]): ran(folder, secrets, *command) for command in commands}
        said |= through_a_gateway(folder, secrets)
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
        f"{len(secrets)} secrets, {len(commands)} commands, {len(said) - len(commands)} answers and pages of a gateway, "
        f"{len(files)} files, {len(kept)} records: {len(found)} found"
    )
    for place, variable, number in found[:10]:
        print(f"  {variable} in {place}, form {number}")
    redactor = Redactor(list(secrets.values()))
    changed = [text for text in benign() if redactor.text(text) != text or redactor.json({"said": text}) != plain(text)]
    took = timed(redactor)
    print(f"200 ordinary records, {len(changed)} changed {changed[:2]}")
    print(f"redacting 10 KB: {took:.0f} µs with {len(secrets)} secrets (at most {PROMISED:.0f})")
    return 1 if found or changed or not kept or took > PROMISED else 0


def plain(text: str) -> str:
    """A record's arguments as they are kept if there is nothing to hide."""
    return json.dumps({"said": text}, ensure_ascii=False, separators=(",", ":"))


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


def timed(redactor: Redactor) -> float:
    """Microseconds for a record of ten kilobytes, the best of many."""
    text = json.dumps(benign())[:10_240]
    best = float("inf")
    for _ in range(200):
        began = time.perf_counter()
        redactor.text(text)
        best = min(best, time.perf_counter() - began)
    return best * 1e6


if __name__ == "__main__":
    sys.exit(main())
