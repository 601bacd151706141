"""Has the C library give the memory of large messages back to the system as soon as they are let go."""

import ctypes
import functools
import sys

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
