"""What `tocsin hooks` does to the files of the user's agents. Cases K01 and D05 of tests/data/cases.jsonl stand here."""

import json
import re
import stat
from collections.abc import Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.agents.agent import BadPayload
from tocsin.agents.install import INSTALLERS, double_registrations, jsonc
from tocsin.agents.install.claude import CLAUDE
from tocsin.agents.install.codex import CODEX
from tocsin.agents.install.copilot import COPILOT
from tocsin.agents.install.cursor import CURSOR
from tocsin.agents.install.endpoint import write_endpoint
from tocsin.agents.install.entries import Entry, Form, cleared, merged
from tocsin.agents.install.gemini import GEMINI
from tocsin.agents.install.installer import Did, Outcome, SettingsHooks
from tocsin.agents.install.machine import HOOK, HookCommand, Machine
from tocsin.agents.install.opencode import OPENCODE
from tocsin.agents.install.pi import PI
from tocsin.agents.install.qwen import QWEN
from tocsin.agents.install.settings_file import TRIES_MAX, backup_of, update
from tocsin.agents.registry import AGENTS
from tocsin.cli.main import main
from tocsin.contract.refusals import Code, Refusal

MERGED = (CLAUDE, CODEX, GEMINI, QWEN, CURSOR, COPILOT)
OWN = (OPENCODE, PI)

by_agent = pytest.mark.parametrize("installer", INSTALLERS.values(), ids=INSTALLERS)
by_merged_agent = pytest.mark.parametrize("installer", MERGED, ids=lambda one: one.agent)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


@pytest.fixture
def hook(machine: Machine) -> HookCommand:
    return HookCommand(machine.home)


def done(result: Outcome | Refusal) -> Outcome:
    assert isinstance(result, Outcome), result
    return result


def placed(file: Path, content: str) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content.encode())
    return file


def a_program(folder: Path, name: str, version: str) -> Mapping[str, str]:
    """An environment in which a program of that name says that version."""
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\necho '{version}'\n")
    (folder / name).chmod(0o755)
    return {"PATH": str(folder)}


def events(value: Mapping[str, Any]) -> list[str]:
    return list(value["hooks"])


USERS = """{
    "zeta": {"unknown to us": [1, 2.50, 1e3, null]},
    "model": "opus",
    "hooks": {
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [{"type": "command", "command": "/home/me/guard.sh"}, {"type": "command", "command": "audit"}]},
            { "matcher": "Edit|Write",
              "hooks": [ {"type": "command", "command": "~/bin/no-secrets", "timeout": 10} ] }
        ],
        "Stop": [
            {
                "hooks": [
                    {"type": "command", "command": "say done"},
                    {"type": "command", "command": "tee /tmp/log"}
                ]
            }
        ],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "log-prompt"}]}],
        "SessionStart": [{"matcher": "startup", "hooks": [{"type": "command", "command": "cat notes"}]}],
        "PreCompact": [{"hooks": [{"type": "command", "command": "save"}]}],
        "Notification": [{"hooks": [{"type": "command", "command": "notify-send hi"}]}]
    },
    "permissions": {"allow": ["Bash(ls:*)"], "defaultMode": "default"},
    "alpha": "\\u00e9é"
}
"""
"""Nine hooks of the user's on six events, in an order and with spaces of their own."""


def handlers(value: Mapping[str, Any], ours: Callable[[object], bool], *, is_ours: bool) -> list[tuple[str, Mapping[str, Any]]]:
    return [
        (event, handler)
        for event, groups in value["hooks"].items()
        for group in groups
        for handler in group["hooks"]
        if ours(handler["command"]) is is_ours
    ]


def test_k01_the_user_s_own_hooks_survive_install_upgrade_clash_and_uninstall(machine, hook):
    file = placed(machine.home / ".claude/settings.json", USERS)
    users = json.loads(USERS)
    theirs = handlers(users, hook.starts, is_ours=False)
    assert (len(theirs), len(users["hooks"])) == (9, 6)

    # 1000: all of the user's is there, ours once per event, a backup is named.
    first = done(CLAUDE.install(machine, hook))
    assert first.did is Did.INSTALLED
    assert first.backup is not None
    assert first.backup.read_text() == USERS
    installed = json.loads(file.read_text())
    assert handlers(installed, hook.starts, is_ours=False) == theirs
    assert {key: value for key, value in installed.items() if key != "hooks"} == {
        key: value for key, value in users.items() if key != "hooks"
    }
    assert list(installed) == list(users)
    ours = [event for event, _ in handlers(installed, hook.starts, is_ours=True)]
    assert sorted(ours) == sorted(event.name for event in CLAUDE.events)

    # 2000: again, no change.
    text = file.read_bytes()
    touched = file.stat().st_mtime_ns
    assert done(CLAUDE.install(machine, hook)).did is Did.ALREADY
    assert (file.read_bytes(), file.stat().st_mtime_ns) == (text, touched)

    # 3000: an upgrade with another path replaces ours, none is left twice.
    upgraded = HookCommand(machine.home, PurePosixPath(".local/lib/tocsin/hook"), before=(HOOK,))
    assert done(CLAUDE.install(machine, upgraded)).did is Did.INSTALLED
    newer = json.loads(file.read_text())
    assert handlers(newer, upgraded.starts, is_ours=False) == theirs
    assert [event for event, _ in handlers(newer, upgraded.starts, is_ours=True)] == ours
    assert {handler["command"] for _, handler in handlers(newer, upgraded.starts, is_ours=True)} == {
        upgraded.line("claude"),
        upgraded.line("claude", "park"),
    }
    assert str(hook.path) not in file.read_text()

    # 3500: a running agent rewrites the file between our read and write; neither change is lost.
    clashes = [1]

    def clash(text: str | None) -> str:
        result = merged(text, CLAUDE.entries(machine, hook), CLAUDE.form, upgraded.starts)
        if clashes.pop() > 0:
            file.write_text(file.read_text().replace('"opus"', '"sonnet"'))
            clashes.append(0)
        return result

    change = update(file, clash)
    assert not isinstance(change, Refusal)
    both = json.loads(file.read_text())
    assert both["model"] == "sonnet"
    assert sorted(event for event, _ in handlers(both, hook.starts, is_ours=True)) == sorted(ours)

    # 4000: the user adds hooks whose paths contain our name.
    added = [
        str(machine.home / ".local/share/tocsin-guard/hook"),
        "/opt/tocsin/hook claude",
        "tocsin hook",
        "guard .local/share/tocsin/hook",
    ]
    text_now = file.read_text()
    for command in added:
        text_now = jsonc.append(text_now, ("hooks", "Stop"), {"hooks": [{"type": "command", "command": command}]})
    file.write_text(text_now)

    # 5000: uninstall leaves the user's state and nothing of ours; the old backup is not theirs any more and stays.
    last = done(CLAUDE.uninstall(machine, hook))
    assert (last.did, last.backup) == (Did.REMOVED, first.backup)
    left = json.loads(file.read_text())
    expected = users | {"model": "sonnet"}
    expected["hooks"] = users["hooks"] | {
        "Stop": [*users["hooks"]["Stop"], *({"hooks": [{"type": "command", "command": command}]} for command in added)]
    }
    assert left == expected
    assert file.read_text().startswith(USERS[: USERS.index('"Stop"')].replace("opus", "sonnet"))
    assert file.read_text().endswith(USERS[USERS.index('"UserPromptSubmit"') :])

    # 6100: a file that is not valid JSON is refused, untouched.
    file.write_text('{"hooks": {\n  "Stop": [\n}')
    refusal = CLAUDE.install(machine, hook)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BROKEN_SETTINGS
    assert f"{file}, line 3" in refusal.message
    assert file.read_text() == '{"hooks": {\n  "Stop": [\n}'

    # 7100: a symlink into a folder of dotfiles stays one, its target as at the start.
    target = placed(machine.home / "dotfiles/claude.json", USERS)
    file.unlink()
    file.symlink_to(target)
    done(CLAUDE.install(machine, hook))
    assert str(hook.path) in target.read_text()
    assert sorted(path.name for path in target.parent.iterdir()) == ["claude.json"]
    done(CLAUDE.uninstall(machine, hook))
    assert file.is_symlink()
    assert target.read_text() == USERS


def test_d05_a_hook_that_is_registered_twice_is_named_with_its_places(machine, hook):
    done(CLAUDE.install(machine, hook))
    assert double_registrations(machine.home) == []
    plugin = machine.home / ".claude/plugins/cache/market/status/1.0/hooks/hooks.json"
    placed(plugin, json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": f"sh {hook.path} claude"}]}]}}))
    (double,) = double_registrations(machine.home)
    settings = str(machine.home / ".claude/settings.json")
    assert (double.agent, double.events, double.places) == ("claude", ("Stop",), (settings, str(plugin)))
    assert str(double) == f"Claude Code reports Stop twice: registered in {settings} and {plugin}"


def test_a_plugin_that_is_switched_off_or_out_of_date_registers_nothing(machine, hook):
    text = json.dumps({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": hook.line("claude")}]}]}})
    placed(machine.home / ".claude/settings.json", '{"enabledPlugins": {"off@market": false}}')
    done(CLAUDE.install(machine, hook))
    placed(machine.home / ".claude/plugins/cache/market/off/1.0/hooks/hooks.json", text)
    placed(machine.home / ".claude/plugins/cache/market/on/1.0/hooks/hooks.json", text)
    newest = placed(machine.home / ".claude/plugins/cache/market/on/1.1/hooks/hooks.json", text)
    (double,) = double_registrations(machine.home)
    assert double.places[1:] == (str(newest),)


def test_the_same_line_in_a_project_s_settings_runs_once_in_claude_code_and_twice_in_gemini(machine, hook, tmp_path):
    project = tmp_path / "project"
    for installer in (CLAUDE, GEMINI):
        done(installer.install(machine, hook))
        placed(project / installer.project_files[0], installer.file(machine).read_text())
    assert {double.agent for double in double_registrations(machine.home, (project,))} == {"gemini"}
    # The home itself as a project names no file twice.
    assert double_registrations(machine.home, (machine.home,)) == []


def test_doubles_in_one_file_in_codex_s_config_and_among_plugin_files_are_found(machine, hook):
    for installer in (CODEX, QWEN, OPENCODE):
        done(installer.install(machine, hook))
    placed(machine.home / ".codex/config.toml", f'[[hooks.Stop]]\nhooks = [{{ type = "command", command = "{hook.path} codex" }}]\n')
    twice = json.loads(QWEN.file(machine).read_text())
    twice["hooks"]["Stop"] *= 2
    QWEN.file(machine).write_text(json.dumps(twice))
    placed(machine.home / ".config/opencode/plugins/other.js", OPENCODE.text())
    found = {double.agent: (double.events, len(double.places)) for double in double_registrations(machine.home)}
    assert found == {"codex": (("Stop",), 2), "qwen": (("Stop",), 1), "opencode": (("every event",), 2)}
    assert "more than once" in str(next(double for double in double_registrations(machine.home) if double.agent == "qwen"))


@by_agent
def test_where_there_was_no_file_there_is_none_after_uninstall(installer, machine, hook):
    assert done(installer.install(machine, hook)).did is Did.INSTALLED
    assert installer.is_installed(machine, hook)
    assert done(installer.install(machine, hook)).did is Did.ALREADY
    assert done(installer.uninstall(machine, hook)).did is Did.REMOVED
    assert not installer.file(machine).exists()
    assert not installer.is_installed(machine, hook)
    assert done(installer.uninstall(machine, hook)).did is Did.NOTHING
    assert [path for path in machine.home.rglob("*") if path.is_file()] == []


TEXTS = {
    "minified": '{"a":1,"hooks":{"Stop":[]}}',
    "one line with spaces": '{"a": [1, 2], "b": {}}',
    "empty object": "{}",
    "empty object on two lines": "{\n}\n",
    "no line end at the end": '{\n  "a": 1\n}',
    "tabs": '{\n\t"a": {\n\t\t"b": 1\n\t},\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n',
    "carriage returns": '{\r\n    "a": 1,\r\n    "hooks": {\r\n    }\r\n}\r\n',
    "byte order mark": '\ufeff{\n "a": "é"\n}\n',
    "empty lists with spaces": '{\n  "hooks": { "Stop": [ ], "stop": [\n  ] }\n}\n',
    "a key twice": '{"a": 1, "a": 2, "hooks": {}, "hooks": {"Stop": []}}',
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@by_merged_agent
def test_uninstall_gives_the_file_back_byte_for_byte(installer, text, machine, hook):
    file = placed(installer.file(machine), text)
    outcome = done(installer.install(machine, hook))
    assert outcome.backup == backup_of(file)
    value = jsonc.parse(file.read_bytes().decode(), installer.form.dialect).value
    before = jsonc.parse(text, installer.form.dialect).value
    assert {key: value[key] for key in before if key != "hooks"} == {key: before[key] for key in before if key != "hooks"}
    assert set(events(value)) >= {entry.event for entry in installer.entries(machine, hook)}
    done(installer.uninstall(machine, hook))
    assert file.read_bytes() == text.encode()
    assert not backup_of(file).exists()


def test_without_a_backup_uninstall_still_takes_out_what_is_ours_and_what_that_empties(machine, hook):
    file = placed(CLAUDE.file(machine), '{\n "a": 1,\n "hooks": {"Other": [], "Stop": []}\n}\n')
    backup = done(CLAUDE.install(machine, hook)).backup
    assert backup is not None
    backup.unlink()
    done(CLAUDE.uninstall(machine, hook))
    assert file.read_text() == '{\n "a": 1,\n "hooks": {"Other": []}\n}\n'


@pytest.mark.parametrize("text", ["{}", '{"hooks": {}}', '{"version": 1, "hooks": {"stop": []}}', ""])
@by_merged_agent
def test_a_file_in_which_nothing_is_ours_is_left_by_uninstall(installer, text, machine, hook):
    file = placed(installer.file(machine), text)
    assert done(installer.uninstall(machine, hook)).did is Did.NOTHING
    assert file.read_text() == text


WITH_COMMENTS = """// mine
{
  /* the model */
  "model": "x", // not y
  "hooks": { // hooks
    "Stop": [ // none yet
    ],
    "BeforeTool": [
      { "matcher": "*", "hooks": [ { "type": "command", "command": "guard" } ] } // keep
    ] // last
  } // end of hooks
} // end
"""


@pytest.mark.parametrize("installer", [GEMINI, QWEN], ids=lambda one: one.agent)
def test_comments_stay_where_they_are(installer, machine, hook):
    file = placed(installer.file(machine), WITH_COMMENTS)
    done(installer.install(machine, hook))
    text = file.read_text()
    assert re.findall(r"//.*|/\*.*\*/", text) == re.findall(r"//.*|/\*.*\*/", WITH_COMMENTS)
    # A change of the user's own, so that the backup cannot help.
    file.write_text(text.replace('"x"', '"z"'))
    done(installer.uninstall(machine, hook))
    assert file.read_text() == WITH_COMMENTS.replace('"x"', '"z"')


@pytest.mark.parametrize("installer", [CLAUDE, CODEX], ids=lambda one: one.agent)
def test_comments_are_refused_where_the_agent_does_not_read_them(installer, machine, hook):
    file = placed(installer.file(machine), WITH_COMMENTS)
    refusal = installer.install(machine, hook)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BROKEN_SETTINGS
    assert file.read_text() == WITH_COMMENTS
    assert not backup_of(file).exists()


BROKEN = {
    "nothing": ("", 1),
    "a comma too many": ('{\n"a": 1,\n}', 2),
    "a comma missing": ('{\n"a": 1\n"b": 2}', 3),
    "two values": ("{}\n\n{}", 3),
    "no object": ("[]", 1),
    "hooks is no object": ('{\n"hooks": []}', 2),
    "an event is no list": ('{\n"hooks": {\n"Stop": {}}}', 3),
    "not JSON's numbers": ('{"a": NaN}', 1),
    "a string over two lines": ('{"a": "x\ny"}', 1),
    "too deep": ('{"a": ' + "[" * 300 + "]" * 300 + "}", 1),
}


@pytest.mark.parametrize(("text", "line"), BROKEN.values(), ids=BROKEN)
def test_a_file_that_the_agent_could_not_read_is_refused_with_its_line_and_left(text, line, machine, hook):
    file = placed(CLAUDE.file(machine), text)
    refusal = CLAUDE.install(machine, hook)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BROKEN_SETTINGS
    assert f"{file}, line {line}:" in refusal.message
    assert file.read_text() == text
    assert [path for path in file.parent.iterdir() if path != file] == []


def test_a_file_that_is_not_utf_8_is_refused_and_left(machine, hook):
    file = CLAUDE.file(machine)
    file.parent.mkdir()
    file.write_bytes(b'{"a": "\xff"}')
    refusal = CLAUDE.install(machine, hook)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BROKEN_SETTINGS
    assert file.read_bytes() == b'{"a": "\xff"}'


def test_a_folder_in_the_file_s_place_is_refused(machine, hook):
    CLAUDE.file(machine).mkdir(parents=True)
    refusal = CLAUDE.install(machine, hook)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.BROKEN_SETTINGS


def test_a_file_that_somebody_else_keeps_writing_is_refused_and_left_as_they_wrote_it(tmp_path):
    file = placed(tmp_path / "settings.json", "{}")
    writes = []

    def edit(text: str | None) -> str:
        writes.append(text)
        file.write_text(f'{{"n": {len(writes)}}}')
        return '{"ours": 1}'

    refusal = update(file, edit)
    assert isinstance(refusal, Refusal)
    assert refusal.code is Code.CHANGED_MEANWHILE
    assert len(writes) == TRIES_MAX
    assert file.read_text() == f'{{"n": {TRIES_MAX}}}'
    assert [path.name for path in tmp_path.iterdir()] == ["settings.json"]


def test_the_mode_of_a_file_is_kept_and_a_new_one_is_for_the_user_alone(machine, hook):
    file = placed(CLAUDE.file(machine), "{}")
    file.chmod(0o640)
    done(CLAUDE.install(machine, hook))
    done(CODEX.install(machine, hook))
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert stat.S_IMODE(backup_of(file).stat().st_mode) == 0o640
    assert stat.S_IMODE(CODEX.file(machine).stat().st_mode) == 0o600


def test_through_a_link_to_a_file_that_is_not_there_yet_the_target_is_made(machine, hook):
    file = CLAUDE.file(machine)
    file.parent.mkdir()
    file.symlink_to(machine.home / "dotfiles" / "claude.json")
    done(CLAUDE.install(machine, hook))
    assert file.is_symlink()
    assert str(hook.path) in (machine.home / "dotfiles" / "claude.json").read_text()


def test_entries_of_another_home_that_shares_the_file_are_replaced(machine, hook):
    other = HookCommand(Path("/Users/me with spaces"))
    done(CLAUDE.install(machine, other))
    assert "'/Users/me with spaces/.local/share/tocsin/hook' claude" in CLAUDE.file(machine).read_text()
    done(CLAUDE.install(machine, hook))
    value = json.loads(CLAUDE.file(machine).read_text())
    assert {handler["command"] for _, handler in handlers(value, hook.starts, is_ours=True)} == {
        hook.line("claude"),
        hook.line("claude", "park"),
    }
    assert handlers(value, hook.starts, is_ours=False) == []


def test_a_handler_of_the_user_s_in_a_group_with_ours_stays(machine, hook):
    done(CLAUDE.install(machine, hook))
    file = CLAUDE.file(machine)
    file.write_text(jsonc.append(file.read_text(), ("hooks", "Stop", 0, "hooks"), {"type": "command", "command": "mine"}))
    done(CLAUDE.install(machine, hook))
    value = json.loads(file.read_text())
    commands = [handler["command"] for group in value["hooks"]["Stop"] for handler in group["hooks"]]
    assert sorted(commands) == sorted(["mine", hook.line("claude"), hook.line("claude", "park")])
    done(CLAUDE.uninstall(machine, hook))
    assert json.loads(file.read_text()) == {"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "mine"}]}]}}


def test_an_event_that_this_version_does_not_ask_for_any_more_goes(machine, hook):
    file = placed(
        CLAUDE.file(machine), json.dumps({"hooks": {"MessageDisplay": [{"hooks": [{"type": "command", "command": hook.line("claude")}]}]}})
    )
    done(CLAUDE.install(machine, hook))
    assert "MessageDisplay" not in json.loads(file.read_text())["hooks"]


@by_merged_agent
def test_every_event_that_is_asked_for_means_something_to_us(installer, machine, hook):
    for event in installer.events:
        try:
            AGENTS[installer.agent].translate(event.name, {}, lambda text: text)
        except BadPayload:
            continue  # known, and it needs more than an empty payload


@by_merged_agent
def test_nothing_that_the_agent_waits_for_takes_long_and_the_end_of_a_session_least(installer):
    limits = {event.name.lower(): event.limit_s for event in installer.events if not event.parks}
    assert max(limits.values()) <= 5
    assert limits["sessionend"] <= 3


def test_limits_are_written_in_each_agent_s_own_unit(machine, hook):
    told = {installer.agent: installer.entries(machine, hook)[0].value for installer in MERGED}
    assert told["claude"] == {"hooks": [{"type": "command", "command": hook.line("claude"), "timeout": 5}]}
    assert told["codex"]["hooks"][0]["timeout"] == told["qwen"]["hooks"][0]["timeout"] == 5
    assert told["gemini"] == {
        "matcher": "*",
        "hooks": [{"type": "command", "name": "tocsin", "command": hook.line("gemini"), "timeout": 5000}],
    }
    assert told["cursor"] == {"command": hook.line("cursor"), "timeout": 5}
    assert told["copilot"] == {"type": "command", "bash": hook.line("copilot", "sessionStart"), "timeoutSec": 5}


def test_claude_code_is_told_by_handlers_that_keep_the_order_of_events(machine, hook):
    entries = CLAUDE.entries(machine, hook)
    reports = [handler for entry in entries for handler in entry.value["hooks"] if handler["command"] == hook.line("claude")]
    assert len(reports) == len({entry.event for entry in entries})
    assert all("async" not in handler for handler in reports)
    assert [entry.value["matcher"] for entry in entries if "matcher" in entry.value] == ["permission_prompt|idle_prompt"]


def test_claude_code_is_woken_by_calls_that_wait_in_the_background_from_its_start_on_and_after_each_turn(machine, hook):
    entries = CLAUDE.entries(machine, hook)
    parked = {
        entry.event: handler for entry in entries for handler in entry.value["hooks"] if handler["command"] == hook.line("claude", "park")
    }
    assert set(parked) == {"SessionStart", "Stop"}
    # A day: in milliseconds it still fits into what timers take.
    assert all(handler["async"] and handler["asyncRewake"] and handler["timeout"] == 24 * 60 * 60 for handler in parked.values())
    # They hold nothing up only where they run in the background: an older version would wait for them.
    old = Machine(machine.home, a_program(machine.home / "bin", "claude", "2.1.80 (Claude Code)"))
    assert not [entry for entry in CLAUDE.entries(old, hook) if "async" in entry.value["hooks"][0]]


def test_an_older_install_gets_the_parked_calls_beside_what_it_has(machine, hook):
    file = CLAUDE.file(machine)
    done(CLAUDE.install(machine, hook))
    value = json.loads(file.read_text())
    for event in ("SessionStart", "Stop"):
        del value["hooks"][event][1]
    file.write_text(json.dumps(value))
    assert not CLAUDE.is_installed(machine, hook)
    done(CLAUDE.install(machine, hook))
    assert CLAUDE.is_installed(machine, hook)
    assert [entry.value for entry in CLAUDE.entries(machine, hook) if entry.event == "Stop"] == json.loads(file.read_text())["hooks"][
        "Stop"
    ]


def test_no_agent_but_claude_code_is_told_to_park_by_a_hook(machine, hook):
    assert [one.agent for one in MERGED if any(event.parks for event in one.events)] == ["claude"]


def test_gemini_is_never_asked_for_events_of_each_request_or_chunk():
    assert not {event.name for event in GEMINI.events} & {"BeforeModel", "AfterModel", "BeforeToolSelection"}


CURSORS = {
    "no version": ({}, False),
    "an old editor": ({"cursor": "1.7.54\nabc\nx64"}, False),
    "a new editor": ({"cursor": "2.6.1\nabc\nx64"}, True),
    "a new agent": ({"cursor-agent": "2026.09.10-a1b2c3"}, True),
    "an old agent": ({"cursor-agent": "2025.10.02-bd871ac"}, False),
    "a new agent beside an old editor": ({"cursor-agent": "2026.09.10-a1b2c3", "cursor": "2.0.77"}, False),
    "one that says nothing": ({"cursor": "hello"}, False),
}


@pytest.mark.parametrize(("versions", "younger"), CURSORS.values(), ids=CURSORS)
def test_cursor_is_asked_only_for_events_that_every_installed_version_knows(versions, younger, tmp_path, hook):
    for program, version in versions.items():
        a_program(tmp_path / "bin", program, version)
    machine = Machine(tmp_path, {"PATH": f"{tmp_path}/bin:/bin:/usr/bin"})
    names = [entry.event for entry in CURSOR.entries(machine, hook)]
    assert {"beforeSubmitPrompt", "stop"} <= set(names)
    assert ("preToolUse" in names) is younger
    assert any("older than 2.5" in step for step in done(CURSOR.install(machine, hook)).todo) is not younger


def test_an_old_claude_code_is_not_asked_for_an_event_that_it_does_not_know(tmp_path, hook):
    old = Machine(tmp_path, a_program(tmp_path / "bin", "claude", "2.1.80 (Claude Code)"))
    assert "PermissionDenied" not in [entry.event for entry in CLAUDE.entries(old, hook)]
    new = Machine(tmp_path, a_program(tmp_path / "bin", "claude", "2.1.332 (Claude Code)"))
    assert "PermissionDenied" in [entry.event for entry in CLAUDE.entries(new, hook)]


FOLDERS = {
    "CLAUDE_CONFIG_DIR": (CLAUDE, "settings.json"),
    "CODEX_HOME": (CODEX, "hooks.json"),
    "GEMINI_CLI_HOME": (GEMINI, ".gemini/settings.json"),
    "QWEN_HOME": (QWEN, "settings.json"),
    "COPILOT_HOME": (COPILOT, "hooks/tocsin.json"),
    "XDG_CONFIG_HOME": (OPENCODE, "opencode/plugin/tocsin.js"),
    "PI_CODING_AGENT_DIR": (PI, "extensions/tocsin.ts"),
}


@pytest.mark.parametrize(("variable", "where"), FOLDERS.items(), ids=FOLDERS)
def test_an_agent_s_own_variable_says_where_its_folder_is(variable, where, tmp_path):
    installer, file = where
    machine = Machine(tmp_path, {variable: str(tmp_path / "elsewhere")})
    assert installer.file(machine) == tmp_path / "elsewhere" / file
    assert not installer.is_here(machine)


@by_agent
def test_an_agent_is_here_when_its_program_or_its_folder_is(installer, tmp_path):
    assert not installer.is_here(Machine(tmp_path))
    assert installer.is_here(Machine(tmp_path, a_program(tmp_path / "bin", installer.programs[0], "1.0")))
    installer.folder(Machine(tmp_path)).mkdir(parents=True)
    assert installer.is_here(Machine(tmp_path))


@pytest.mark.parametrize("installer", OWN, ids=lambda one: one.agent)
def test_a_file_of_the_user_s_with_our_file_s_name_is_never_touched(installer, machine, hook):
    file = placed(installer.file(machine), "export const Mine = async () => ({})\n")
    refusal = installer.install(machine, hook)
    assert isinstance(refusal, Refusal)
    assert done(installer.uninstall(machine, hook)).did is Did.NOTHING
    assert file.read_text() == "export const Mine = async () => ({})\n"


@pytest.mark.parametrize("installer", OWN, ids=lambda one: one.agent)
def test_an_older_file_of_ours_is_replaced_and_the_folder_stays_for_others(installer, machine, hook):
    file = placed(installer.file(machine), installer.text() + "// of an older version\n")
    other = placed(file.with_name("mine.js"), "")
    assert done(installer.install(machine, hook)).did is Did.INSTALLED
    assert file.read_text() == installer.text()
    done(installer.uninstall(machine, hook))
    assert list(file.parent.iterdir()) == [other]


def test_what_switches_hooks_off_is_said(machine, hook):
    placed(CLAUDE.file(machine), '{"disableAllHooks": true}')
    placed(QWEN.file(machine), '{"disableAllHooks": true}')
    placed(GEMINI.file(machine), '{"hooksConfig": {"enabled": false, "disabled": ["tocsin"]}}')
    placed(machine.home / ".codex/config.toml", "[features]\nhooks = false\n")
    said = {installer.agent: " ".join(done(installer.install(machine, hook)).todo) for installer in (CLAUDE, QWEN, GEMINI, CODEX)}
    assert "disableAllHooks" in said["claude"]
    assert "disableAllHooks" in said["qwen"]
    assert "hooksConfig.enabled" in said["gemini"]
    assert "hooksConfig.disabled" in said["gemini"]
    assert "Hooks need review" in said["codex"]
    assert "[features]" in said["codex"]


# ---------------------------------------------------------------- the command


def test_install_without_names_installs_for_the_agents_that_are_here(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    (tmp_path / ".claude").mkdir()
    (tmp_path / ".codex").mkdir()
    assert main(["hooks", "install", "--home", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    did = {row["agent"]: row["did"] for row in told["agents"]}
    assert did == dict.fromkeys(INSTALLERS, "not found") | {"claude": "installed", "codex": "installed"}
    assert Path(told["hook"]).stat().st_mode & 0o777 == 0o755
    assert main(["hooks", "install", "--home", str(tmp_path)]) == 0
    assert "Claude Code: already" in capsys.readouterr().out
    assert main(["hooks", "uninstall", "--home", str(tmp_path)]) == 0
    assert "Claude Code: removed" in capsys.readouterr().out
    assert not (tmp_path / ".claude/settings.json").exists()


def test_install_tells_the_backup_and_what_the_user_must_still_do(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    placed(tmp_path / ".codex/hooks.json", "{}")
    assert main(["hooks", "install", "codex", "--home", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert str(tmp_path / ".codex/hooks.json.before-tocsin") in told
    assert "Hooks need review" in told


def test_a_refused_file_stops_no_other_agent_and_is_the_exit_code(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    placed(tmp_path / ".claude/settings.json", "{")
    (tmp_path / ".codex").mkdir()
    assert main(["hooks", "install", "--home", str(tmp_path)]) == 3
    told = capsys.readouterr().out
    assert "Claude Code: refused." in told
    assert "Codex: installed" in told


def test_install_with_no_agent_here_and_for_an_unknown_one(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert main(["hooks", "install", "--home", str(tmp_path)]) == 1
    assert list(tmp_path.iterdir()) == []
    assert main(["hooks", "install", "emacs", "--home", str(tmp_path)]) == 3
    assert "no agent emacs" in capsys.readouterr().err


def test_status_tells_what_is_wanting(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    state = tmp_path / ".local/state/tocsin"

    def status() -> tuple[int, dict[str, Any]]:
        capsys.readouterr()
        code = main(["hooks", "status", "--home", str(tmp_path), "--json"])
        return code, json.loads(capsys.readouterr().out)

    assert status()[0] == 1
    main(["hooks", "install", "claude", "--home", str(tmp_path)])
    code, told = status()
    assert (code, told["hook"]["version"], told["hook"]["current"], told["endpoint"]["url"]) == (1, 3, True, None)
    write_endpoint(state, "http://127.0.0.1:1", "c", "h")
    code, told = status()
    assert (code, told["endpoint"]["url"], told["endpoint"]["answers"]) == (1, "http://127.0.0.1:1", False)
    assert "c" not in told["endpoint"].values()
    placed(state / "spool" / "1796008550000-1-4-event.hook", "")
    placed(state / "spool" / "lost", "tte")
    HookCommand(tmp_path).path.write_text("#!/bin/sh\n# tocsin-hook 0\n")
    told = status()[1]
    assert told["spool"] == {"events": 1, "lost": 3}
    assert (told["hook"]["version"], told["hook"]["current"]) == (0, False)
    assert {row["agent"]: row["installed"] for row in told["agents"]} == dict.fromkeys(INSTALLERS, False) | {"claude": True}
    main(["hooks", "status", "--home", str(tmp_path)])
    assert "version 0, not this one: install again" in capsys.readouterr().out


# ---------------------------------------------------------------- the editor

SPACES = ("", "", " ", "\n", "\n  ", "\r\n\t")
MARK = "¶"
COMMENTS = (f" /* {MARK} */ ", f"// {MARK}, [ {{\n", f' // " {MARK}\r\n  ', f"/* {MARK}\n b */")

texts = st.text(max_size=3).filter(lambda text: MARK not in text)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts | st.sampled_from([1.5, -2e30]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)
roots = st.lists(values, max_size=3) | st.dictionaries(texts, values, max_size=3)


@st.composite
def written(draw: st.DrawFn, dialect: jsonc.Dialect) -> tuple[Any, str]:
    """A value, and one of the many ways to write it down."""
    spaces = st.sampled_from(SPACES + COMMENTS if dialect.comments else SPACES)

    def text(value: Any) -> str:
        if not isinstance(value, dict | list):
            return json.dumps(value, ensure_ascii=draw(st.booleans()))
        if isinstance(value, dict):
            items = [f"{json.dumps(key)}{draw(spaces)}:{draw(spaces)}{text(item)}" for key, item in value.items()]
        else:
            items = [text(item) for item in value]
        trail = "," + draw(spaces) if items and dialect.trailing_commas and draw(st.booleans()) else ""
        inside = ",".join(f"{draw(spaces)}{item}{draw(spaces)}" for item in items) + trail if items else draw(spaces)
        return "{" + inside + "}" if isinstance(value, dict) else "[" + inside + "]"

    value = draw(roots)
    return value, draw(spaces) + text(value) + draw(spaces)


def containers(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    if not isinstance(value, dict | list):
        return []
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    return [path, *(found for key, item in inside for found in containers(item, (*path, key)))]


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def is_within(part: str, whole: str) -> bool:
    """Whether `part` is `whole` with some characters left out."""
    rest = iter(whole)
    return all(character in rest for character in part)


dialects = pytest.mark.parametrize("dialect", [jsonc.STRICT, jsonc.WITH_COMMENTS, jsonc.LENIENT], ids=["strict", "comments", "lenient"])


@dialects
@given(data=st.data())
def test_whatever_way_a_value_is_written_it_is_read_as_what_it_is(dialect, data):
    value, text = data.draw(written(dialect))
    assert jsonc.parse(text, dialect).value == value


@dialects
@given(data=st.data(), new=values)
def test_an_append_changes_the_value_by_that_and_no_byte_of_the_rest(dialect, data, new):
    value, text = data.draw(written(dialect))
    path = data.draw(st.sampled_from(containers(value)))
    container = at(value, path)
    key = "new key" if isinstance(container, dict) else None
    after = jsonc.append(text, path, new, key=key, dialect=dialect)
    if key is None:
        container.append(new)
    else:
        container[key] = new
    assert jsonc.parse(after, dialect).value == value
    assert is_within(text, after)
    # What was put in comes out again without a trace; of an empty container only its white space may be lost.
    place = key if key is not None else len(container) - 1
    back = jsonc.remove(after, (*path, place), dialect=dialect)
    assert back == text if len(container) > 1 else "".join(back.split()) == "".join(text.split())


@dialects
@given(data=st.data())
def test_a_removal_changes_the_value_by_that_and_leaves_every_comment_around_it(dialect, data):
    value, text = data.draw(written(dialect))
    paths = [path for path in containers(value) if at(value, path)]
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    container = at(value, path)
    place = data.draw(st.sampled_from(list(container) if isinstance(container, dict) else list(range(len(container)))))
    after = jsonc.remove(text, (*path, place), dialect=dialect)
    node = jsonc.find(jsonc.parse(text, dialect), path)
    item = text[node.starts[node.at(place)] : node.items[node.at(place)].end]
    del container[place]
    assert jsonc.parse(after, dialect).value == value
    assert is_within(after, text)
    assert after.count(MARK) == text.count(MARK) - item.count(MARK)


def test_what_is_appended_looks_like_its_neighbours():
    assert jsonc.append('{"a":1}', (), 2, key="b") == '{"a":1,"b":2}'
    assert jsonc.append('{"a": [1]}', ("a",), {"x": 1}) == '{"a": [1, {"x": 1}]}'
    assert jsonc.append('{\n\t"a": []\n}\n', ("a",), {"x": 1}) == '{\n\t"a": [\n\t\t{\n\t\t\t"x": 1\n\t\t}\n\t]\n}\n'
    assert jsonc.append('{\r\n "a": 1\r\n}', (), [], key="b") == '{\r\n "a": 1,\r\n "b": []\r\n}'
    assert jsonc.append('{\n  "a": 1 // one\n}', (), 2, key="b", dialect=jsonc.WITH_COMMENTS) == '{\n  "a": 1, // one\n  "b": 2\n}'
    assert jsonc.append("[\n  1,\n]", (), 2, dialect=jsonc.LENIENT) == "[\n  1,\n  2,\n]"


def test_an_edit_names_a_place_that_is_there():
    for path, key in ((("b",), None), ((), "a"), (("a",), "x"), ((), None)):
        with pytest.raises(KeyError):
            jsonc.append('{"a": []}', path, 1, key=key)
    for gone in (("b",), ("a", 0), ("a", "x"), ("a", -1)):
        with pytest.raises(KeyError):
            jsonc.remove('{"a": []}', gone)


@given(
    theirs=st.dictionaries(
        st.sampled_from(["Stop", "PreToolUse", "Other"]), st.lists(st.sampled_from(["guard", "audit", "hook"]), max_size=3), max_size=3
    )
)
def test_whatever_the_user_has_merging_and_clearing_gives_it_back(theirs):
    hook = HookCommand(Path("/home/me"))
    form = Form()
    entries = [
        Entry(event, {"hooks": [{"type": "command", "command": hook.line("claude")}]}) for event in ("Stop", "PreToolUse", "SessionEnd")
    ]
    text = json.dumps(
        {"hooks": {event: [{"hooks": [{"command": command}]} for command in commands] for event, commands in theirs.items()}}, indent=1
    )
    installed = merged(text, entries, form, hook.starts)
    assert merged(installed, entries, form, hook.starts) == installed
    assert cleared(installed, text, entries, form, hook.starts) == text
    # Also after a change that makes the two incomparable.
    changed = jsonc.append(installed, (), 1, key="changed")
    assert json.loads(cleared(changed, text, entries, form, hook.starts) or "") == json.loads(text) | {"changed": 1}


def test_every_merged_agent_stands_in_this_file():
    assert {one.agent for one in MERGED} == {one.agent for one in INSTALLERS.values() if isinstance(one, SettingsHooks)}
