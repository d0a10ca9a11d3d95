"""How each agent is started as a worker, what it is allowed, and how it is woken and interrupted."""

import json
import re
import tomllib

import pytest

from tocsin.agents.agent import WakeWay
from tocsin.agents.idle import idle_answer
from tocsin.agents.launch import BRIEF_VARIABLE, LaunchPlan, LaunchRequest, interrupt_keys, launch_of
from tocsin.agents.launching.plan import BRIEF_BYTES_MAX, FOREIGN, REPORTING
from tocsin.agents.registry import AGENTS
from tocsin.agents.skill import skill_text
from tocsin.cli.main import VERBS, main
from tocsin.contract.refusals import Code, Refusal

FOLDER = "/state/panes/r1.api.1"
BRIEF = 'You are working on one Task.\n\nTask api: it\'s "the" API, $HOME and `all`\n'

WORKERS = ("claude", "codex", "gemini", "qwen", "cursor", "opencode", "copilot", "pi", "generic")
MODELLED = tuple(name for name in WORKERS if name != "generic")


def a_request(agent: str, **more: object) -> LaunchRequest:
    given: dict[str, object] = {
        "agent": agent,
        "folder": FOLDER,
        "brief": BRIEF,
        "brief_file": f"{FOLDER}/brief.md",
        "cwd": "/work/tree",
        "command": ("./worker", "--fast") if agent == "generic" else (),
    }
    return LaunchRequest(**(given | more))  # type: ignore[arg-type]


def planned(agent: str, **more: object) -> LaunchPlan:
    plan = launch_of(a_request(agent, **more))
    assert isinstance(plan, LaunchPlan), plan
    return plan


def refused(agent: str, **more: object) -> Code:
    refusal = launch_of(a_request(agent, **more))
    assert isinstance(refusal, Refusal)
    return refusal.code


every_terminal = pytest.mark.parametrize("terminal", ["tmux", "process"])


@every_terminal
@pytest.mark.parametrize("agent", MODELLED)
def test_the_brief_goes_along_whole_as_the_last_argument(agent, terminal):
    argv = planned(agent, terminal=terminal).argv
    assert argv[-1].endswith(BRIEF)
    assert argv[-1].removesuffix(BRIEF) in ("", "--prompt=", "--prompt-interactive=", "--interactive=")
    assert sum(BRIEF in word for word in argv) == 1


@pytest.mark.parametrize("agent", ["claude", "codex"])
@every_terminal
def test_what_takes_any_number_of_words_does_not_swallow_the_brief(agent, terminal):
    assert planned(agent, terminal=terminal).argv[-2] == "--"


@pytest.mark.parametrize(
    "brief", ["--yolo", "-p", "/exit", "@secrets", "!rm -rf .", "# note", "  --yolo", "", "a\0b", "é" * BRIEF_BYTES_MAX]
)
@pytest.mark.parametrize("agent", MODELLED)
def test_a_brief_that_is_no_plain_text_of_an_argument_s_length_is_named_by_its_file(agent, brief):
    prompt = planned(agent, brief=brief).argv[-1]
    assert prompt.endswith(f"Your brief is in the file {FOLDER}/brief.md: read all of it, then do what it says.")


@pytest.mark.parametrize("agent", WORKERS)
def test_the_file_of_the_brief_is_in_every_worker_s_environment(agent):
    assert planned(agent).environment[BRIEF_VARIABLE] == f"{FOLDER}/brief.md"


@pytest.mark.parametrize("agent", MODELLED)
@every_terminal
def test_a_model_is_asked_for_by_name_and_only_then(agent, terminal):
    assert "--model" not in planned(agent, terminal=terminal).argv
    argv = planned(agent, terminal=terminal, model="big-1").argv
    assert argv[argv.index("--model") + 1] == "big-1"


def test_a_program_of_the_user_s_own_runs_as_it_is_given_and_takes_no_model():
    plan = planned("generic")
    assert (plan.argv, plan.turn_start_signal) == (("./worker", "--fast"), False)
    assert refused("generic", model="big-1") is Code.AGENT_CANNOT
    assert refused("generic", command=()) is Code.BAD_REQUEST


@pytest.mark.parametrize("agent", MODELLED)
def test_an_agent_with_a_command_line_of_its_own_takes_no_command(agent):
    assert refused(agent, command=("sh", "-c", "true")) is Code.AGENT_CANNOT


def test_what_cannot_report_is_no_worker():
    assert refused("aider") is Code.AGENT_CANNOT
    assert refused("emacs") is Code.UNKNOWN_AGENT


def test_every_agent_that_we_know_can_be_started_or_is_refused_for_what_it_cannot():
    assert {name for name in AGENTS if isinstance(launch_of(a_request(name)), LaunchPlan)} == set(WORKERS)


@pytest.mark.parametrize("agent", WORKERS)
@every_terminal
def test_only_cursor_cannot_be_allowed_to_report_and_says_so(agent, terminal):
    plan = planned(agent, terminal=terminal)
    assert plan.reports_from_sandbox is (agent != "cursor")
    assert plan.reports_from_sandbox or "allow it there" in plan.note


@pytest.mark.parametrize("agent", WORKERS)
@every_terminal
def test_a_launch_without_a_sign_of_its_turn_s_start_says_so(agent, terminal):
    plan = planned(agent, terminal=terminal)
    silent = agent == "generic" or (agent, terminal) == ("cursor", "process")
    assert plan.turn_start_signal is not silent
    assert not silent or "turn has begun" in plan.note


@pytest.mark.parametrize("agent", WORKERS)
@every_terminal
def test_a_worker_inherits_no_mark_of_the_agent_that_started_us_and_no_secret_goes_along(agent, terminal):
    plan = planned(agent, terminal=terminal)
    assert plan.unset == FOREIGN
    assert not plan.unset & set(plan.environment)
    assert not [name for name in plan.environment if re.search("KEY|TOKEN|SECRET|AUTH", name)]


@pytest.mark.parametrize("agent", WORKERS)
def test_what_a_launch_writes_lies_in_the_pane_s_own_folder(agent):
    assert all(file.startswith(f"{FOLDER}/") and file != f"{FOLDER}/brief.md" for file in planned(agent).files)


@pytest.mark.parametrize("agent", WORKERS)
@every_terminal
def test_no_agent_is_started_with_its_approvals_or_its_sandbox_switched_off(agent, terminal):
    words = " ".join(planned(agent, terminal=terminal, brief="do it").argv)
    assert not re.search(r"yolo|danger|bypass|skip-permissions|--force|--auto\b|never|--trust|--skip-trust|allow-all", words)


# ------------------------------------------------ the reporting commands, in each agent's own words


@every_terminal
def test_claude_code_gets_one_narrow_rule_for_each_reporting_command(terminal):
    argv = planned("claude", terminal=terminal).argv
    assert argv[argv.index("--allowed-tools") + 1].split(",") == [f"Bash(tocsin {verb}:*)" for verb in REPORTING]
    # It asks its person before it takes a further folder: where its sandbox is on, the folder is writable all the same.
    assert "--add-dir" not in argv
    assert json.loads(argv[argv.index("--settings") + 1]) == {"sandbox": {"filesystem": {"allowWrite": [FOLDER]}}}


@every_terminal
def test_codex_runs_in_its_sandbox_with_the_folder_writable_and_the_path_of_its_pane(terminal):
    argv = planned("codex", terminal=terminal).argv
    assert argv[argv.index("--sandbox") + 1] == "workspace-write"
    assert argv[argv.index("--add-dir") + 1] == FOLDER
    assert argv[argv.index("--config") + 1] == "allow_login_shell=false"


def test_codex_asks_on_request_and_never_runs_through_its_daemon():
    argv = planned("codex").argv
    assert argv[argv.index("--ask-for-approval") + 1] == "on-request"
    assert "--no-daemon" in argv
    assert planned("codex", terminal="process").argv[1] == "exec"


@every_terminal
def test_gemini_gets_a_policy_that_allows_the_reporting_commands_alone(terminal):
    plan = planned("gemini", terminal=terminal)
    ((file, text),) = plan.files.items()
    assert f"--policy={file}" in plan.argv
    (rule,) = tomllib.loads(text)["rule"]
    assert rule == {
        "toolName": "run_shell_command",
        "commandPrefix": [f"tocsin {verb}" for verb in REPORTING],
        "decision": "allow",
        "priority": 200,
    }
    assert f"--include-directories={FOLDER}" in plan.argv


@pytest.mark.parametrize(
    ("agent", "form"), [("qwen", "--allowed-tools=run_shell_command(tocsin {})"), ("copilot", "--allow-tool=shell(tocsin {}:*)")]
)
@every_terminal
def test_qwen_code_and_copilot_get_one_narrow_rule_for_each_reporting_command(agent, form, terminal):
    allowed = [word for word in planned(agent, terminal=terminal).argv if "allow" in word]
    assert allowed == [form.format(verb) for verb in REPORTING]


@pytest.mark.parametrize("agent", ["opencode", "pi"])
def test_opencode_is_allowed_by_its_plugin_and_pi_asks_nobody(agent):
    plan = planned(agent)
    assert set(plan.environment) == {BRIEF_VARIABLE}
    assert not plan.files


def test_what_may_be_run_without_asking_only_speaks_to_the_run():
    assert set(REPORTING) < set(VERBS)
    assert not {"run", "task", "worker", "custody", "gate"} & set(REPORTING)


# ------------------------------------------------------------------ waking


@pytest.mark.parametrize("agent", [name for name in AGENTS if WakeWay.IDLE_HOOK in AGENTS[name].wake])
def test_an_idle_hook_is_answered_in_the_agent_s_own_form(agent):
    text = 'Mail for r1:\n"run" tocsin mail check é'
    wanted = {
        "gemini": {"decision": "deny", "reason": text},
        "cursor": {"followup_message": text},
    }.get(agent, {"decision": "block", "reason": text})
    assert json.loads(idle_answer(agent, text)) == wanted


@pytest.mark.parametrize("agent", ["opencode", "pi", "aider", "generic", "emacs"])
def test_an_agent_whose_idle_hook_takes_no_answer_is_given_none(agent):
    with pytest.raises(ValueError, match=agent):
        idle_answer(agent, "x")


def test_the_ways_to_wake_are_those_that_were_seen_to_leave_a_draft_alone():
    ways = {name: {way.value for way in agent.wake} for name, agent in AGENTS.items()}
    assert ways == {
        "claude": {"idle_hook", "native_park", "typed"},
        "codex": {"idle_hook", "typed"},
        "gemini": {"idle_hook", "typed"},
        "qwen": {"idle_hook", "typed"},
        "cursor": {"idle_hook"},
        "opencode": {"native_plugin", "typed"},
        "copilot": {"idle_hook"},
        "pi": {"native_plugin", "typed"},
        "aider": set(),
        "generic": set(),
    }


def test_a_cap_on_answers_is_known_where_there_is_one():
    assert {name: agent.idle_cap for name, agent in AGENTS.items() if agent.idle_cap} == {"claude": 8, "qwen": 7, "cursor": 5, "copilot": 8}


def test_only_what_has_no_hooks_of_its_own_gives_no_sign_of_a_turn_s_start():
    assert {name for name, agent in AGENTS.items() if not agent.turn_start_signal} == {"aider", "generic"}


def test_every_agent_has_keys_that_cancel_its_turn():
    keys = {name: interrupt_keys(name) for name in AGENTS}
    assert keys["claude"] == keys["codex"] == keys["gemini"] == ("Escape",)
    assert keys["opencode"] == ("Escape", "Escape")
    assert interrupt_keys("emacs") == ("C-c",)


# --------------------------------------------------------------- the skill


def test_the_skill_names_only_verbs_that_there_are():
    named = set(re.findall(r"tocsin ([a-z-]+)", skill_text()))
    assert named - {"skill"} <= set(VERBS)
    assert {"run", "task", "worker", "mail", "review", "custody"} <= named


def test_the_skill_is_one_page_with_a_head_that_agents_read():
    head, text = skill_text().removeprefix("---\n").split("---\n", 1)
    fields = dict(line.split(": ", 1) for line in head.splitlines())
    assert set(fields) == {"name", "description"}
    # A colon and a space within a value would make it another mapping.
    assert not [value for value in fields.values() if ": " in value]
    assert len(text.splitlines()) <= 60


def test_tocsin_skill_prints_it(capsys):
    assert main(["skill"]) == 0
    assert capsys.readouterr().out == skill_text()
    assert main(["skill", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["name"] == "tocsin"
    assert told["text"].startswith("# The loop")
    assert skill_text().endswith(told["text"])
