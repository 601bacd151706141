"""The salt of redaction marks: made once, kept for its owner alone, so that equal secrets look equal from run to run."""

import os
import secrets
from pathlib import Path

_BYTES = 32


def kept_salt(folder: Path) -> bytes:
    """The salt in the state folder; one for this run only where nothing can be kept."""
    file = folder / "redaction-salt"
    try:
        return _read(file) or _made(file)
    except OSError:
        return secrets.token_bytes(_BYTES)


def _read(file: Path) -> bytes | None:
    try:
        salt = file.read_bytes()
    except FileNotFoundError:
        return None
    return salt if len(salt) == _BYTES else None


def _made(file: Path) -> bytes:
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    salt = secrets.token_bytes(_BYTES)
    draft = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(salt)
    if _read(file) is None and file.exists():
        file.unlink()  # cut short by a full disk or a crash
    try:
        os.link(draft, file)  # whoever is first gives the salt to all
    except FileExistsError:
        return _read(file) or salt
    finally:
        draft.unlink()
    return salt
