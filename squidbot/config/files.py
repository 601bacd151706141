"""Reads the small files that settings point at, within bounds, from the folder of the settings file."""

from pathlib import Path

from squidbot.config.variables import parse_env_file

MAX_BYTES = 1_000_000


def under(folder: Path | None, path: str) -> Path:
    """`path` as an absolute one: `~` is the home folder, a relative one starts from the settings file's folder."""
    try:
        expanded = Path(path).expanduser()
    except RuntimeError:  # a user nobody knows: the path is then taken as it is written
        expanded = Path(path)
    return ((folder or Path.cwd()) / expanded).absolute()


def display(path: Path) -> str:
    """The path as a person would type it from here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def read_text(path: Path) -> str:
    """The text of a file of at most a megabyte. Raises OSError or ValueError, whose words are fit for a report."""
    with path.open("rb") as file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES} bytes")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not UTF-8 text (byte {error.start} is no part of any character)") from None


def read_secret(path: Path) -> str:
    """A secret file's text without the newline that editors put at its end."""
    return read_text(path).rstrip("\r\n")


def read_env_file(path: Path) -> dict[str, str]:
    """The variables of an env file."""
    return dict(parse_env_file(read_text(path)))
