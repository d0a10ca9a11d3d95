"""What becomes of memory that is free again."""

import ctypes

MIB = 1024 * 1024

KEPT_BYTES_MAX = 32 * MIB
"""Freed memory that a process keeps for what comes next. (A list of 10,000 worktrees has 4 MB.)"""

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3
"""Of glibc's malloc.h."""


def keep_freed() -> None:
    """Keep freed memory, up to KEPT_BYTES_MAX, for a process that makes large things again and again.

    glibc gives what is larger than some hundred KB back at once, and getting it anew costs a fault for each page: more than
    filling it. C libraries without these knobs are left as they are.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(M_MMAP_THRESHOLD, KEPT_BYTES_MAX)
        mallopt(M_TRIM_THRESHOLD, KEPT_BYTES_MAX)
