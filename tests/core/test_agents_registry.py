"""Which agent a program is, and what each agent's file declares."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.agents import target as target_module
from tocsin.agents.registry import AGENTS, agent_of_program, read_title_of
from tocsin.agents.target import program, target
from tocsin.contract.ids import token
from tocsin.contract.messages import Reading

PROGRAMS = [
    ("claude", "claude"),
    ("/usr/local/bin/claude", "claude"),
    ("/home/dev/.local/share/claude/versions/2.1.332", "claude"),
    ("/opt/lib/node_modules/@anthropic-ai/claude-code/cli.js", "claude"),
    ("codex", "codex"),
    ("codex.exe", "codex"),
    ("/opt/lib/node_modules/@openai/codex/bin/codex.js", "codex"),
    ("gemini", "gemini"),
    ("/opt/lib/node_modules/@google/gemini-cli/dist/index.js", "gemini"),
    ("qwen", "qwen"),
    ("/opt/lib/node_modules/@qwen-code/qwen-code/dist/index.js", "qwen"),
    ("cursor-agent", "cursor"),
    ("opencode", "opencode"),
    ("copilot", "copilot"),
    ("pi", "pi"),
    ("/home/dev/venv/bin/aider", "aider"),
    ("zsh", None),
    ("node", None),
    ("claude-notes", None),
    ("/srv/claude/run.py", None),
    ("codex-bench", None),
    ("cursor", None),  # the editor, not the agent in a terminal
    ("", None),
]


@pytest.mark.parametrize(("program", "expected"), PROGRAMS)
def test_a_program_is_an_agent(program, expected):
    agent = agent_of_program(program)
    assert (agent.name if agent else None) == expected


def test_every_agent_goes_by_a_name_that_can_stand_in_a_subject_and_a_path():
    assert all(name == agent.name == token(name) for name, agent in AGENTS.items())


def test_no_program_is_two_agents():
    programs = [program for agent in AGENTS.values() for program in agent.programs]
    assert len(programs) == len(set(programs))


def test_no_agent_may_send_on_a_variable_that_is_named_like_a_secret():
    names = [name for agent in AGENTS.values() for name in agent.environment]
    assert names
    assert not [name for name in names for word in ("KEY", "TOKEN", "SECRET", "AUTH") if word in name]


TITLES_WITH_AGENT = [
    ("codex", "my-project", Reading.IDLE, "at rest Codex shows the project's name alone"),
    ("codex", "⠦ my-project", Reading.WORKING, "a glyph says more than the name"),
    ("codex", "", Reading.NONE, "it has left"),
    ("claude", "my-project", Reading.NONE, "Claude Code always has a glyph"),
    (None, "my-project", Reading.NONE, "a folder"),
    ("qwen", "✳︎ Fix the build", Reading.PERMISSION, "the star of Qwen Code waits"),
    ("claude", "✳ Qwen - adapter", Reading.IDLE, "a topic of Claude Code"),
    ("nobody", "⠋ job", Reading.WORKING, "an agent that we do not know"),
]


@pytest.mark.parametrize(("agent", "title", "expected", "why"), TITLES_WITH_AGENT)
def test_a_title_is_read_as_the_agent_that_is_known_to_run_there_makes_it(agent, title, expected, why):
    assert read_title_of(agent, title) is expected, why


TARGETS = [
    ({"command": "npm test --token abc"}, "npm", "the program, and nothing else of a command"),
    ({"command": "  /usr/bin/git push"}, "git", "without its folder"),
    ({"command": "API_KEY=abc X='two words' npm test"}, "npm", "assignments may hold secrets, with spaces in them too"),
    ({"command": "sudo -u root -E systemctl stop x"}, "systemctl", "what sudo starts, not its options"),
    ({"command": "env -i A=b nice -n 5 make"}, "make", "one in front of another"),
    ({"command": "sudo"}, "sudo", "nothing behind it"),
    ({"command": "# deploy with hunter2\nmake deploy"}, "make", "a comment is no program"),
    ({"command": "PASS=$(cat secret) run"}, None, "the inner command's words cannot be told from the outer's"),
    ({"command": "`cat secret`"}, None, "so here"),
    ({"command": "'unfinished hunter2"}, None, "not a command that can be read"),
    ({"command": "my secret is hunter2!" * 100}, "my", "one word of it"),
    ({"command": "x" * 100}, None, "no program has such a name"),
    ({"command": "hunter2!"}, None, "nor such signs"),
    ({"command": ""}, None, "nothing"),
    ({"command": ["/bin/zsh", "-lc", "FOO=1 cargo build"]}, "cargo", "a shell that runs a text"),
    ({"command": ["git", "status"]}, "git", "words"),
    ({"command": [1, 2]}, None, "not words"),
    ({"file_path": "/w/src/app.py", "content": "secret"}, "app.py", "the file's name, without its folder"),
    ({"path": "C:\\w\\app.py"}, "app.py", "with the other slash"),
    ({"path": "/w/dir/"}, "dir", "a folder"),
    ({"file_path": "/w/a\nb"}, "a\N{REPLACEMENT CHARACTER}b", "made valid"),
    ({"url": "https://u:p@host/"}, None, "neither program nor file"),
    ({"prompt": "secret"}, None, "neither"),
    ("text", None, "not an object"),
    (None, None, "no input"),
]


@pytest.mark.parametrize(("given", "expected", "why"), TARGETS)
def test_a_tool_s_input_is_about(given, expected, why):
    assert target(given) == expected, why


@given(st.text(alphabet="ab=/.;|&<>() \n$`'\"#-sudo1", max_size=30))
def test_the_short_way_to_a_program_never_differs_from_the_lexers(command):
    told = program(command)
    plain, target_module._PLAIN = target_module._PLAIN, re.compile(r"(?!)")
    try:
        assert told == program(command)
    finally:
        target_module._PLAIN = plain
