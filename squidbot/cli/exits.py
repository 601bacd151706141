"""The exit codes, one meaning each."""

from typing import Final

DONE: Final = 0
FAILED: Final = 1
"""The tool or the run failed, or `doctor` found something."""
USAGE: Final = 2
"""The command line or the settings are wrong."""
REFUSED: Final = 3
"""A role, a limit or an approval says no."""
UNAVAILABLE: Final = 4
"""A server that was needed is not available."""
INTERRUPTED: Final = 130
