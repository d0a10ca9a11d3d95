"""The clock that pane-host keeps for hook commands, beside a kernel that tells what the test sets. Hook commands: test_hook_command."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tocsin.agents.install.hook_clock import NAME, HookClock, read_hook_clock, write_hook_clock
from tocsin.pane_host.boot_clock import LOOK_MS_MAX, STEP_MS, UPTIME_GRAIN_MS, BootClock

BOOT = "2be27013-fd94-444d-8b5a-05d42c6b0a4c"
BEGAN_MS = 1_796_000_000_000


@dataclass
class Machine:
    """UTC and the kernel's facts. `held_up_ms`: how long each look at UTC takes."""

    kernel: Path
    utc_ms: int = BEGAN_MS
    held_up_ms: int = 0

    def now_ms(self) -> int:
        self.utc_ms += self.held_up_ms
        return self.utc_ms

    def awake_ms(self) -> int:
        raise AssertionError("it stands still while the machine sleeps")

    def boots(self, boot: str) -> None:
        (self.kernel / "sys/kernel/random").mkdir(parents=True, exist_ok=True)
        (self.kernel / "sys/kernel/random/boot_id").write_text(f"{boot}\n")
        (self.kernel / "uptime").write_text("0.00 0.00\n")

    def runs_for(self, since_boot_ms: int, utc_ms: int) -> None:
        (self.kernel / "uptime").write_text(f"{since_boot_ms // 1000}.{since_boot_ms // 10 % 100:02} 1.00\n")
        self.utc_ms = utc_ms


@pytest.fixture
def machine(tmp_path):
    made = Machine(tmp_path / "proc")
    made.boots(BOOT)
    return made


@pytest.fixture
def kept(tmp_path, machine):
    (tmp_path / "state").mkdir()
    return BootClock(tmp_path / "state", machine, machine.kernel)


def began_ms(kept: BootClock) -> int | None:
    found = read_hook_clock(kept.state)
    return found and found.began_ms


def test_it_says_when_this_boot_began_and_no_stamp_is_later_than_its_moment(kept, machine):
    # 9 ms are cut off by the kernel here, and none when a hook looks.
    machine.runs_for(60_009, BEGAN_MS + 60_009)
    kept.keep()
    assert read_hook_clock(kept.state) == HookClock(BOOT, BEGAN_MS + 9 - UPTIME_GRAIN_MS)
    assert (kept.state / NAME).read_text() == f"{BOOT} {BEGAN_MS - 1}\n"
    assert (kept.state / NAME).stat().st_mode & 0o777 == 0o600


def test_time_that_passes_changes_nothing(kept, machine):
    kept.keep()
    first = (kept.state / NAME).stat()
    for passed_ms in (9, 5_000, 5_019, 86_400_000, 900_000_001):
        machine.runs_for(passed_ms, BEGAN_MS + passed_ms + LOOK_MS_MAX)
        kept.keep()
    assert (kept.state / NAME).stat() == first


@pytest.mark.parametrize("by_ms", [STEP_MS + UPTIME_GRAIN_MS, -STEP_MS - UPTIME_GRAIN_MS, 3_600_000, -3_600_000])
def test_a_clock_that_was_set_is_followed(kept, machine, by_ms, capsys):
    machine.runs_for(5_000, BEGAN_MS + 5_000)
    kept.keep()
    assert capsys.readouterr().err == ""
    machine.runs_for(10_000, BEGAN_MS + 10_000 + by_ms)
    kept.keep()
    assert began_ms(kept) == BEGAN_MS - UPTIME_GRAIN_MS + by_ms
    assert "clock.was_set" in capsys.readouterr().err


def test_another_boot_and_a_damaged_or_missing_file_are_written_anew(kept, machine):
    kept.keep()
    machine.boots("b007")
    kept.keep()
    assert read_hook_clock(kept.state) == HookClock("b007", BEGAN_MS - UPTIME_GRAIN_MS)
    (kept.state / NAME).write_bytes(b"\xff")
    kept.keep()
    assert began_ms(kept) == BEGAN_MS - UPTIME_GRAIN_MS
    (kept.state / NAME).unlink()
    kept.keep()
    assert began_ms(kept) == BEGAN_MS - UPTIME_GRAIN_MS


@pytest.mark.parametrize("missing", ["uptime", "sys/kernel/random/boot_id"])
def test_where_the_kernel_does_not_tell_there_is_none_and_an_old_one_goes(kept, machine, missing):
    kept.keep()
    (machine.kernel / missing).unlink()
    kept.keep()
    assert not (kept.state / NAME).exists()
    kept.keep()
    assert list(kept.state.iterdir()) == []


@pytest.mark.parametrize("uptime", ["", "soon 1.00\n"])
def test_a_kernel_that_tells_something_else_is_not_believed(kept, machine, uptime):
    kept.keep()
    (machine.kernel / "uptime").write_text(uptime)
    kept.keep()
    assert not (kept.state / NAME).exists()


def test_a_clock_that_was_never_set_is_not_handed_on(kept, machine):
    machine.runs_for(5_000, 5_000)
    kept.keep()
    assert list(kept.state.iterdir()) == []
    with pytest.raises(ValueError, match="no clock"):
        write_hook_clock(kept.state, HookClock(BOOT, 999))


def test_a_look_that_was_held_up_between_the_clocks_tells_nothing(kept, machine):
    kept.keep()
    machine.held_up_ms = LOOK_MS_MAX + 1
    machine.runs_for(5_000, BEGAN_MS + 7_000)
    kept.keep()
    assert began_ms(kept) == BEGAN_MS - UPTIME_GRAIN_MS
    machine.held_up_ms = 0
    kept.keep()
    assert began_ms(kept) > BEGAN_MS


def test_a_folder_that_is_gone_ends_nothing(kept):
    kept.state.rmdir()
    kept.keep()
    assert not kept.state.exists()
