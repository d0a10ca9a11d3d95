"""The state folder: made once, private, held by one supervisor, and never mistaken for another's."""

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from support import Deadline
from tocsin.contract.refusals import Refusal
from tocsin.runtime import instance
from tocsin.runtime.instance import Child, Endpoint, Identity, Keeper, Unusable

HOLD = """
import subprocess, sys
from pathlib import Path
from tocsin.runtime import instance
state = Path(sys.argv[1])
lock = instance.take_lock(state)
heir = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], pass_fds=(lock,))
print(heir.pid, flush=True)
sys.stdin.read()
"""
"""A supervisor that hands the lock to one server, then waits."""


def an_endpoint(**fields) -> Endpoint:
    defaults = {
        "version": "1.0", "instance": "i", "keeper": Keeper.UP, "nats_url": "nats://127.0.0.1:1", "redis_url": "redis://127.0.0.1:2/0",
        "ingest_url": "http://127.0.0.1:3", "host": "h", "workspace": "default", "supervisor": instance.identify(os.getpid()),
    }  # fmt: skip
    return Endpoint(**(defaults | fields))


def everything(state: Path) -> None:
    instance.create(state)
    instance.create_server_credentials(state, [*instance.NATS_USERS, instance.REDIS_CREDENTIAL])


def contents(state: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in state.iterdir()}


# ------------------------------------------------------------- making it


def test_everything_in_the_folder_is_its_owners_alone(tmp_path: Path):
    everything(tmp_path / "i")
    instance.write_endpoint(tmp_path / "i", an_endpoint())
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "i").iterdir()}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "i").stat().st_mode) == 0o700


def test_a_folder_that_others_could_read_is_closed_before_secrets_are_in_it(tmp_path: Path):
    (tmp_path / "i").mkdir(mode=0o755)
    instance.create(tmp_path / "i")
    assert stat.S_IMODE((tmp_path / "i").stat().st_mode) == 0o700


def test_making_it_again_changes_nothing(tmp_path: Path):
    everything(tmp_path)
    before = contents(tmp_path)
    everything(tmp_path)
    assert contents(tmp_path) == before


def test_no_two_instances_share_a_secret(tmp_path: Path):
    everything(tmp_path / "a")
    everything(tmp_path / "b")
    a, b = contents(tmp_path / "a"), contents(tmp_path / "b")
    assert [name for name in a if a[name] == b[name]] == []


def test_an_instance_made_from_copies_keeps_its_secrets(tmp_path: Path):
    everything(tmp_path / "copies")
    instance.create(tmp_path / "new", made_before=tmp_path / "copies")
    instance.create_server_credentials(tmp_path / "new", [*instance.NATS_USERS, instance.REDIS_CREDENTIAL], made_before=tmp_path / "copies")
    assert contents(tmp_path / "new") == contents(tmp_path / "copies")


def test_the_bearers_name_their_instance(tmp_path: Path):
    made = instance.create(tmp_path)
    assert [(instance.credential(tmp_path, name) or "").partition(".")[0] for name in instance.BEARERS] == [made] * len(instance.BEARERS)


def test_of_two_who_create_a_file_at_once_both_get_what_the_first_wrote(tmp_path: Path):
    assert instance.create_private(tmp_path / "f", b"first") == b"first"
    assert instance.create_private(tmp_path / "f", b"second") == b"first"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_a_folder_below_a_file_is_refused_on_one_line_with_the_remedy(tmp_path: Path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Unusable) as refused:
        instance.create(tmp_path / "file" / "state")
    assert "--state DIR" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_full_disk_is_named_and_leaves_the_old_file_and_no_half_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    instance.write_private(tmp_path / "f", b"old")

    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(Unusable, match="the disk is full"):
        instance.write_private(tmp_path / "f", b"new")
    assert contents(tmp_path) == {"f": b"old"}


def test_a_damaged_endpoint_file_counts_as_none(tmp_path: Path):
    (tmp_path / instance.ENDPOINT).write_text('{"version": ')
    assert instance.endpoint(tmp_path) is None


# ------------------------------------------------------------ processes


def test_a_number_that_another_program_has_by_now_names_nobody():
    mine = instance.identify(os.getpid())
    assert mine is not None
    assert instance.alive(mine)
    assert not instance.alive(Identity(mine.pid, mine.started + "0"))


def test_a_process_that_has_ended_but_was_not_reaped_is_not_alive():
    child = subprocess.Popen([sys.executable, "-c", ""])
    for _ in Deadline(10, "the child is a zombie"):
        if instance.identify(child.pid) is None:
            break
    child.wait()


# ----------------------------------------------------------------- lock


def test_the_lock_lasts_as_long_as_any_process_that_inherited_it(tmp_path: Path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    heir = instance.identify(int(holder.stdout.readline()))
    assert instance.take_lock(tmp_path) is None
    assert instance.holder(tmp_path) == instance.identify(holder.pid)

    holder.kill()
    holder.wait()
    assert instance.take_lock(tmp_path) is None
    assert instance.held(tmp_path)
    assert instance.holder(tmp_path) is None

    holder.stdin.close()  # the heir reads from there too: now it ends
    for _ in Deadline(10, "the lock is free"):
        lock = instance.take_lock(tmp_path)
        if lock is not None:
            break
    assert heir is None or not instance.alive(heir)
    os.close(lock)
    assert not instance.held(tmp_path)


def test_whoever_finds_the_folder_held_writes_nothing(tmp_path: Path):
    lock = instance.take_lock(tmp_path)
    before = contents(tmp_path)
    assert instance.take_lock(tmp_path) is None
    assert contents(tmp_path) == before
    os.close(lock)


# ------------------------------------------------------- for the verbs


def test_k02_a_command_of_another_version_is_told_both_versions_and_how_to_restart(tmp_path: Path):
    instance.write_endpoint(tmp_path, an_endpoint(version="1.0"))
    refused = instance.reach(tmp_path, "1.1")
    assert isinstance(refused, Refusal)
    assert "runs 1.0, this command is 1.1: tocsin down && tocsin up" in refused.message


def test_k02_containers_of_another_version_are_made_anew_by_compose(tmp_path: Path):
    instance.write_endpoint(tmp_path, an_endpoint(version="1.0", keeper=Keeper.COMPOSE, supervisor=None))
    refused = instance.reach(tmp_path, "1.1")
    assert isinstance(refused, Refusal)
    assert "docker compose up -d --build" in refused.message


def test_k02_an_endpoint_whose_supervisor_is_gone_is_not_used(tmp_path: Path):
    mine = instance.identify(os.getpid())
    instance.write_endpoint(tmp_path, an_endpoint(supervisor=Identity(mine.pid, "another start")))
    assert isinstance(instance.reach(tmp_path, "1.0"), Refusal)


def test_a_running_instance_of_the_same_version_is_reached(tmp_path: Path):
    instance.write_endpoint(tmp_path, an_endpoint())
    assert instance.reach(tmp_path, "1.0") == an_endpoint()


def test_what_was_started_is_on_record_for_whoever_comes_next(tmp_path: Path):
    started = [
        Child(name="nats", process=instance.identify(os.getpid())),
        Child(name="sorter", process=None, restarts=2, last_exit="SIGKILL"),
    ]
    instance.write_children(tmp_path, started)
    assert instance.children(tmp_path) == started
