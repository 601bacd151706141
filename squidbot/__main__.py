"""The program `squidbot`: tells its version before any library loads, and hands all else to the commands."""

import gc
import sys

_NEW_OBJECTS = 20_000
"""So many more objects than before are worth a search for garbage: loading makes many, and all of them stay."""


def main() -> int:
    """Run one command; the answer is the exit code."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:
        from squidbot._version import __version__

        sys.stdout.write(f"squidbot {__version__}\n")
        return 0
    gc.set_threshold(_NEW_OBJECTS, 20, 20)
    try:
        from squidbot.cli.app import main as run

        return run(arguments)
    except KeyboardInterrupt:
        # Ctrl-C before there was a command that could have been interrupted, or after its end.
        sys.stderr.write("error: interrupted\n")
        return 130
    finally:
        gc.freeze()  # at the end Python searches all there is, which takes a sixth of a short command


if __name__ == "__main__":
    sys.exit(main())
