"""The wall clock of this process runs TOCSIN_TEST_CLOCK_AHEAD_S ahead; the monotonic one is as it is. Python imports this at its start."""

import os
import time

_AHEAD_S = int(os.environ.get("TOCSIN_TEST_CLOCK_AHEAD_S", "0"))
_time, _time_ns = time.time, time.time_ns
time.time = lambda: _time() + _AHEAD_S
time.time_ns = lambda: _time_ns() + _AHEAD_S * 1_000_000_000
