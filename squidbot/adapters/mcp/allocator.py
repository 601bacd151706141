"""Has the memory of large messages given back as soon as they are let go, and not searched before that."""

import ctypes
import functools
import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_M_MMAP_THRESHOLD = -3
"""glibc's number for the size from which a block has pages of its own (mallopt(3))."""
_LARGE = 1_000_000


@functools.cache
def give_large_blocks_back() -> bool:
    """Whether large blocks now live on pages of their own, which go when the block goes.

    By itself glibc learns from the first few large blocks to take the next ones from its heap, and then keeps up to
    twice 32 MB of freed ones: after a single answer of 9 MB squidbot stayed 50 MB larger. To name a size ends the
    learning. It costs a large message about a millisecond, and other libraries than glibc do not need it.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        return bool(ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _LARGE))
    except (AttributeError, OSError):
        return False


@contextmanager
def uncollected() -> Iterator[None]:
    """Build something large. All of it is needed: to look for garbage among it meanwhile would double the time."""
    pause = gc.isenabled()
    if pause:
        gc.disable()
    try:
        yield
    finally:
        if pause:
            gc.enable()
