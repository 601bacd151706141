"""Forks a reaper for each stdio server, so that not every one has to start a Python of its own.

A program (`python -I -S nursery.py SOCKET`), standard library only; of squidbot it loads only the reaper beside it. Each message
on SOCKET is one byte and six descriptors: the server's three streams, control and status of its reaper, and its folder. What the
server is and what it may know stands on the status socket, and only its own reaper reads it: nothing of a server ever gets
into this process, so no other server can find it there. It ends when the socket closes, and leaves the reapers to their work.
"""

# Bare, like the reaper's own: the public face takes longer to load than all else here together.
import _signal as signal  # type: ignore[import-not-found]
import _socket as socket
import os
import sys

MYPY = False
if MYPY:
    from squidbot.adapters.mcp import reaper
elif __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(__file__))
    reaper = __import__("reaper")  # by its place alone: there is no package in here
    del sys.path[0]

_GIVEN = 6
_INT = 4


def main() -> None:
    """Fork a reaper for each message until there is nobody to send one."""
    reaper.defy_signals()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so no reaper becomes a zombie
    reaper.adopt_orphans()
    squidbot = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(squidbot.fileno(), False)
    room = socket.CMSG_SPACE(_GIVEN * _INT)
    while True:
        message, ancillary, _, _ = squidbot.recvmsg(1, room, socket.MSG_CMSG_CLOEXEC)
        if not message:
            os._exit(0)
        given = [number for _, _, data in ancillary for number in _numbers(data)]
        if len(given) == _GIVEN:
            _fork(squidbot, given)
        for descriptor in given:
            os.close(descriptor)


def _numbers(data: bytes) -> list[int]:
    return [int.from_bytes(data[at : at + _INT], sys.byteorder) for at in range(0, len(data), _INT)]


def _fork(squidbot: "socket.socket", given: "list[int]") -> None:
    """A reaper of its own for the server that these descriptors are for."""
    status = given[4]
    try:
        if os.fork():
            return
    except OSError as error:
        _refuse(status, error)
        return
    code = 1
    try:
        squidbot.close()
        code = _tend(*given)
    except OSError as error:
        _refuse(status, error)
    finally:
        os._exit(code)


def _tend(stdin: int, stdout: int, stderr: int, control: int, status: int, folder: int) -> int:
    """Become the reaper: a session, a folder and streams of its own, then what it is to start."""
    os.setsid()
    os.fchdir(folder)
    os.close(folder)
    for number, stream in enumerate((stdin, stdout, stderr)):
        os.dup2(stream, number)
        os.close(stream)
    spelled = bytearray()
    while part := os.read(status, 65_536):
        spelled += part
    grace, firm, count, *words = bytes(spelled).split(b"\0")
    command, environ = words[: int(count)], dict(word.split(b"=", 1) for word in words[int(count) :])

    def announce(*processes: int) -> None:
        """Hand squidbot a hold on both processes, which no other that is given their number can be mistaken for."""
        holds = [os.pidfd_open(process) for process in processes]
        told = socket.socket(fileno=status)
        data = b"".join(hold.to_bytes(_INT, sys.byteorder) for hold in holds)
        told.sendmsg([b"started\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, data)])
        told.detach()
        for hold in holds:
            os.close(hold)

    return reaper.tend(control, status, float(grace), float(firm), command, environ, announce)


def _refuse(status: int, error: OSError) -> None:
    reaper.say(status, b"refused %d\n" % (error.errno or 0))


if __name__ == "__main__":
    main()
