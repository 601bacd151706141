"""The sandbox: inside everything works, and nothing leads outside."""

import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from squidbot.servers.filesystem.sandbox import Sandbox, parts_of, shown
from squidbot.servers.refusal import Refused

pytestmark = pytest.mark.requirement("F-04")

SECRET = b"outside"
ROUNDS = 3_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "folder").mkdir()
    return tmp_path / "folder"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_bytes(SECRET)
    return tmp_path / "outside"


@pytest.fixture
def sandbox(folder: Path) -> Iterator[Sandbox]:
    opened = Sandbox.open(folder)
    yield opened
    opened.close()


def read(sandbox: Sandbox, path: str) -> bytes:
    with sandbox.file(parts_of(path)) as descriptor:
        return os.read(descriptor, 1_000)


@pytest.mark.parametrize(
    ("path", "parts"),
    [
        (".", ()),
        ("a", ("a",)),
        ("./a//b/", ("a", "b")),
        ("a/../b", ("b",)),
        ("a/..", ()),
        ("...", ("...",)),
        ("~", ("~",)),
        ("..a", ("..a",)),
    ],
)
def test_a_path_inside_is_understood_as_people_write_it(path: str, parts: tuple[str, ...]) -> None:
    """Models write './a' and 'a/'; refusing those would cost them a turn for nothing."""
    assert parts_of(path) == parts


@pytest.mark.parametrize("path", ["..", "../a", "a/../../b", "/", "/etc/passwd", "//a", "a\0b", "\ud800"])
def test_a_path_that_leads_out_or_is_none_is_refused_in_words(path: str) -> None:
    """A path is the one thing that a stranger gives us, so it is refused before anything is opened."""
    with pytest.raises(Refused, match=r"^path '.*' (leaves the folder|is absolute|has characters)"):
        parts_of(path)


@given(st.text(alphabet=st.sampled_from("./a\0é\udcff~\\-"), max_size=30))
def test_no_path_whatever_has_a_component_that_could_climb(path: str) -> None:
    """The walk trusts components, so none may be empty, '.', '..' or hold a separator."""
    try:
        parts = parts_of(path)
    except Refused:
        return
    assert all(part not in {"", ".", ".."} and "/" not in part and "\0" not in part for part in parts)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(
    st.lists(st.sampled_from(["..", ".", "", "in", "link", "up", "file", "secret", "outside"]), max_size=6).map(
        "/".join
    )
)
def test_no_combination_of_names_and_links_reads_what_is_outside(
    sandbox: Sandbox, folder: Path, outside: Path, path: str
) -> None:
    """Links, dots and names in any order: whatever is read was put inside."""
    (folder / "in").mkdir(exist_ok=True)
    (folder / "file").write_bytes(b"inside")
    for link, target in {"link": outside, "up": Path("..")}.items():
        for place in (folder / link, folder / "in" / link):
            if not place.is_symlink():
                place.symlink_to(target)
    try:
        content = read(sandbox, path)
    except Refused as refusal:
        content, words = b"inside", str(refusal)
    else:
        words = ""
    assert content == b"inside"
    assert str(folder.parent) not in words


@pytest.mark.parametrize(
    "use",
    [
        lambda box: read(box, "link/secret"),
        lambda box: read(box, "file-link"),
        lambda box: box.write(("link", "secret"), b"changed"),
        lambda box: box.write(("file-link",), b"changed"),
        lambda box: box.make_directory(("link", "made")),
        lambda box: box.remove(("link", "secret")),
        lambda box: box.move(("mine",), ("link", "mine")),
        lambda box: box.move(("link", "secret"), ("stolen",)),
        lambda box: box.entry(("link", "secret")),
        lambda box: box.find(("link", "nothing")),
        lambda box: list(box.walk(("link",), 3)),
    ],
)
def test_a_link_to_the_outside_is_followed_by_nothing(
    sandbox: Sandbox, folder: Path, outside: Path, use: Callable[[Sandbox], object]
) -> None:
    """One operation that follows links is a way out of all of them."""
    (folder / "link").symlink_to(outside)
    (folder / "file-link").symlink_to(outside / "secret")
    (folder / "mine").write_bytes(b"inside")
    with pytest.raises(Refused, match="is a symbolic link, and links are never followed here"):
        use(sandbox)
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret": SECRET}
    assert (folder / "mine").read_bytes() == b"inside"


def test_a_link_is_listed_and_deleted_as_a_link(sandbox: Sandbox, folder: Path, outside: Path) -> None:
    """Somebody must be able to see and to clear away what cannot be used."""
    (folder / "link").symlink_to(outside)
    assert [(entry.path, entry.kind) for entry in sandbox.walk((), 5)] == [("link", "symlink")]
    sandbox.remove(("link",))
    assert list(folder.iterdir()) == []
    assert (outside / "secret").read_bytes() == SECRET


def test_a_directory_that_is_swapped_for_a_link_all_the_time_never_leads_outside(
    sandbox: Sandbox, folder: Path, outside: Path
) -> None:
    """Between a check and its use anything can happen, so there must be no such between."""
    (folder / "real").mkdir()
    (folder / "real" / "secret").write_bytes(b"inside")
    (folder / "link").symlink_to(outside)
    (outside / "other").touch()
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (folder / "real").rename(folder / "place")
            (folder / "place").rename(folder / "real")
            (folder / "link").rename(folder / "place")
            (folder / "place").rename(folder / "link")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[bytes] = set()
    listed: set[str] = set()
    refused = 0
    try:
        for round_ in range(ROUNDS):
            try:
                match round_ % 3:
                    case 0:
                        seen.add(read(sandbox, "place/secret"))
                    case 1:
                        sandbox.write(("place", "secret"), b"inside")
                    case _:
                        listed |= {entry.path for entry in sandbox.walk(("place",), 1)}
            except Refused:
                refused += 1
    finally:
        done.set()
        swapping.join()
    assert seen == {b"inside"}
    assert "place/other" not in listed
    assert refused > 0
    assert {path.name: path.read_bytes() for path in outside.iterdir()} == {"secret": SECRET, "other": b""}


def test_a_file_that_is_swapped_for_a_link_all_the_time_never_leads_outside(
    sandbox: Sandbox, folder: Path, outside: Path
) -> None:
    """The last component is as easily swapped as any other."""
    done = threading.Event()

    def swap() -> None:
        while not done.is_set():
            (folder / "new-link").symlink_to(outside / "secret")
            (folder / "new-link").rename(folder / "place")
            (folder / "new-file").write_bytes(b"inside")
            (folder / "new-file").rename(folder / "place")

    swapping = threading.Thread(target=swap)
    swapping.start()
    seen: set[bytes] = set()
    try:
        for _ in range(ROUNDS):
            try:
                seen.add(read(sandbox, "place"))
            except Refused:
                continue
    finally:
        done.set()
        swapping.join()
    assert seen <= {b"inside"}


def test_pipes_sockets_and_devices_are_refused_without_waiting_for_them(sandbox: Sandbox, folder: Path) -> None:
    """Opening a pipe that nobody writes to would hold a thread for ever."""
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
        for name in ("pipe", "socket"):
            with pytest.raises(Refused, match=f"'{name}' is no regular file but a device, pipe or socket"):
                read(sandbox, name)
            with pytest.raises(Refused, match="is no regular file"):
                sandbox.write((name,), b"")
            assert sandbox.entry((name,)).kind == "other"


def test_a_hard_link_is_a_file_like_any_other_and_writing_leaves_its_twin_alone(
    sandbox: Sandbox, folder: Path, outside: Path
) -> None:
    """Only who already has both names can make one, so it is no way out; what we write stays inside all the same."""
    (folder / "twin").hardlink_to(outside / "secret")
    assert read(sandbox, "twin") == SECRET
    assert sandbox.write(("twin",), b"inside") is False
    assert (folder / "twin").read_bytes() == b"inside"
    assert (outside / "secret").read_bytes() == SECRET


def test_writing_keeps_the_permissions_of_a_file(sandbox: Sandbox, folder: Path) -> None:
    """A script that is edited must still run."""
    (folder / "run").write_bytes(b"old")
    (folder / "run").chmod(0o750)
    sandbox.write(("run",), b"new")
    assert stat.S_IMODE((folder / "run").stat().st_mode) == 0o750


def test_a_write_that_fails_leaves_the_old_file_and_no_rubbish(
    sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk must cost the change, not the file."""

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    (folder / "file").write_bytes(b"old")
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Refused, match="'file': No space left on device"):
        sandbox.write(("file",), b"new")
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("file", b"old")]


def test_readers_see_the_old_or_the_new_content_and_never_a_part(sandbox: Sandbox) -> None:
    """A file that is read while it is written is how half a configuration gets loaded."""
    contents = {b"a" * 500, b"b" * 900}
    sandbox.write(("file",), b"a" * 500)
    done = threading.Event()

    def write() -> None:
        while not done.is_set():
            for content in contents:
                sandbox.write(("file",), content)

    writing = threading.Thread(target=write)
    writing.start()
    try:
        seen = {read(sandbox, "file") for _ in range(500)}
    finally:
        done.set()
        writing.join()
    assert seen <= contents


def test_listings_at_the_same_time_do_not_cut_each_other_short(sandbox: Sandbox, folder: Path) -> None:
    """Descriptors that share a reading position would lose entries when two threads list at once."""
    names = {f"file-{number:03}" for number in range(300)}
    for name in names:
        (folder / name).touch()
    lists: list[set[str]] = []

    def listing() -> None:
        lists.extend({entry.path for entry in sandbox.walk((), 1)} for _ in range(30))

    threads = [threading.Thread(target=listing) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(lists) == 120
    assert all(listed == names for listed in lists)


def test_a_name_that_no_text_can_be_is_not_suggested_to_whoever_gave_it(sandbox: Sandbox, folder: Path) -> None:
    """It is listed with its bytes written out, and no try at that spelling will find it."""
    (Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9.txt"))).touch()
    with pytest.raises(Refused, match="stands for bytes that are no UTF-8"):
        read(sandbox, "caf\\xe9.txt")


def test_a_missing_path_is_answered_with_what_was_perhaps_meant(sandbox: Sandbox) -> None:
    """A model that is told the right name gets it right the next time."""
    sandbox.make_directory(("docs", "deep"))
    sandbox.write(("docs", "deep", "plan.md"), b"")
    with pytest.raises(Refused, match=r"^no file or directory 'plan.md': did you mean 'docs/deep/plan.md'\?$"):
        read(sandbox, "plan.md")
    with pytest.raises(Refused, match=r"^no directory 'doc': did you mean 'docs'\?$"):
        read(sandbox, "doc/plan.md")
    with pytest.raises(
        Refused, match=r"^no directory 'xyz': list_directory shows what is there, create_directory makes"
    ):
        sandbox.write(("xyz", "new"), b"")


def test_what_the_system_refuses_is_said_in_words(sandbox: Sandbox, folder: Path) -> None:
    """An error number helps nobody to choose the next step."""
    sandbox.make_directory(("full", "inner"))
    sandbox.write(("file",), b"")
    with pytest.raises(Refused, match="directory 'full' is not empty"):
        sandbox.remove(("full",))
    with pytest.raises(Refused, match="'file' is not a directory"):
        read(sandbox, "file/inner")
    with pytest.raises(Refused, match="'file' is not a directory"):
        sandbox.make_directory(("file",))
    with pytest.raises(Refused, match="'full' is a directory: list_directory"):
        read(sandbox, "full")
    with pytest.raises(Refused, match="File name too long"):
        read(sandbox, "x" * 300)
    with pytest.raises(Refused, match="is the folder of this server itself"):
        sandbox.remove(())


def test_a_file_without_permission_is_said_to_be_one(
    sandbox: Sandbox, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the model goes on looking for a mistake of its own."""

    def closed(*_: object, **__: object) -> os.stat_result:
        raise PermissionError(13, "Permission denied", str(folder / "closed"))

    # Root may read everything, and tests run as root too.
    monkeypatch.setattr(os, "stat", closed)
    with pytest.raises(Refused, match=r"^the system gives no permission for 'closed'$"):
        sandbox.entry(("closed",))


def test_a_directory_is_made_with_those_above_it_and_a_second_time_not_at_all(sandbox: Sandbox, folder: Path) -> None:
    """Making the same directory twice is what models do, and no error."""
    assert sandbox.make_directory(("a", "b", "c")) is True
    assert sandbox.make_directory(("a", "b", "c")) is False
    assert (folder / "a" / "b" / "c").is_dir()
    assert sandbox.make_directory(()) is False


def test_a_name_that_is_no_text_is_shown_with_its_bytes_escaped(sandbox: Sandbox, folder: Path) -> None:
    """One odd file name must not make a whole listing impossible to send."""
    (folder / os.fsdecode(b"caf\xe9")).touch()
    assert [entry.path for entry in sandbox.walk((), 1)] == ["caf\\xe9"]
    assert shown(()) == "."


def test_a_folder_that_was_renamed_is_still_the_same_folder(sandbox: Sandbox, folder: Path) -> None:
    """The folder is a descriptor, not a path that somebody could point elsewhere."""
    sandbox.write(("file",), b"inside")
    folder.rename(folder.with_name("elsewhere"))
    folder.mkdir()
    assert read(sandbox, "file") == b"inside"
    assert sandbox.entry(()).kind == "directory"
