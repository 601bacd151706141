"""The stylesheet, the script and the icon, under addresses that change with their content."""

import hashlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

_FOLDER = Path(__file__).parent / "static"
_TYPES = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
_FOR_EVER = "public, max-age=31536000, immutable"


class Assets:
    """All files of the folder, read once."""

    def __init__(self) -> None:
        self._files = {path.name: path.read_bytes() for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}
        self._digests = {name: hashlib.sha256(data).hexdigest()[:16] for name, data in self._files.items()}

    def path(self, name: str) -> str:
        """The address of a file. Raises KeyError for one that is not there."""
        return f"/static/{self._digests[name]}/{name}"

    async def serve(self, request: Request) -> Response:
        """Answer for one file: for ever under its own digest, not at all under another."""
        name = request.path_params["name"]
        if self._digests.get(name) != request.path_params["digest"]:
            return Response("There is no such file.", 404, media_type="text/plain")
        return Response(self._files[name], media_type=_TYPES[Path(name).suffix], headers={"Cache-Control": _FOR_EVER})
