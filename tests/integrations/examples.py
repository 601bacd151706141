"""The programs of docs/integrations.md, run as they stand; OpenAI is a server on loopback that always says the same.

`test_toolkits.py` runs this file where the frameworks are.
"""

import contextlib
import io
import json
import os
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.fixtures.running import ROOT
from tests.integrations.test_toolkits import SILENT

PAGE = (ROOT / "docs/integrations.md").read_text("utf-8")
SAID = "There are none yet."
TOOLS = {"mcp_filesystem_list_directory", "mcp_filesystem_write_file"}


class Listening(BaseHTTPRequestHandler):
    """Answers chat completions and responses, and remembers which tools were offered."""

    offered: ClassVar[list[set[str]]] = []

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tools = [tool.get("function", tool) for tool in asked["tools"]]
        self.offered.append({tool["name"] for tool in tools})
        body = json.dumps(_response() if self.path.endswith("/responses") else _completion()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


def _completion() -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}
    return {"id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-5", "choices": [choice]}


def _response() -> dict[str, Any]:
    text = {"type": "output_text", "text": SAID, "annotations": []}
    message = {"id": "m1", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
    return {
        "id": "r1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-5",
        "status": "completed",
        "output": [message],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


@pytest.fixture
def openai(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Listening]]:
    Listening.offered.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Listening)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{server.server_port}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    for name, value in SILENT.items():
        monkeypatch.setenv(name, value)
    yield Listening
    server.shutdown()
    thread.join()
    server.server_close()


# A framework's client of the model is its own to close; this is about what the example does.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.requirement("G-11")
def test_the_example_of_the_guide_runs(
    openai: type[Listening], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A first example that fails is the last one that is tried."""
    framework = os.environ["FRAMEWORK"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    [settings] = re.findall(r"^```json\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    document = json.loads(settings)
    document["tools"]["mcp_servers"]["filesystem"] = {"env": {"PYTHONPATH": str(ROOT)}}
    Path("squidbot.json").write_text(json.dumps(document), encoding="utf-8")
    programs = re.findall(r"^```py\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    [program] = [text for text in programs if f"squidbot.integrations.{framework} " in text]
    seen = io.StringIO()
    with contextlib.redirect_stdout(seen):
        exec(compile(program, "docs/integrations.md", "exec"), {"__name__": "__main__"})
    if framework == "langchain":
        created, refused = seen.getvalue().splitlines()
        assert created == "created 'guide.md', 7 bytes"
        assert "'path' must match '*.md'" in refused
    else:
        assert seen.getvalue().strip() == SAID
        assert openai.offered == [TOOLS]
