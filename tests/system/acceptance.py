"""The acceptance stories, one line each. `make acceptance`, or `python tests/system/acceptance.py [NUMBER ...]`.

Each story is a file of tests; the first line of its docstring is its name. It runs on the built wheel in an environment of its own,
on real NATS, Valkey and tmux, with scripted agents. A story passes when every test in its file does.
"""

import ast
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]

STORIES = {
    1: TESTS / "system" / "loop" / "test_story_1.py",
    2: TESTS / "system" / "loop" / "test_story_2.py",
    3: TESTS / "faults" / "test_crash_matrix.py",
    4: TESTS / "system" / "loop" / "test_story_4.py",
    5: TESTS / "system" / "loop" / "test_story_5.py",
    6: TESTS / "system" / "loop" / "test_story_6.py",
    7: TESTS / "system" / "loop" / "test_story_7.py",
    8: TESTS / "system" / "loop" / "test_story_8.py",
}
"""By their numbers in the issue."""

PASS, FAIL, USAGE = range(3)


def title(story: Path) -> str:
    """The first line of a file's docstring."""
    said = ast.get_docstring(ast.parse(story.read_text())) or story.stem
    return said.splitlines()[0].rstrip(".")


def tell(number: int) -> bool:
    """Run one story and say in one line whether it passes; of one that does not, also what failed and where its log is."""
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "--no-header", "-p", "no:cacheprovider", "--tb=short", str(STORIES[number])]
    environment = {**os.environ, "TOCSIN_CRASH_MATRIX": "all"}
    done = subprocess.run(
        command, env=environment, cwd=TESTS.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    lines = done.stdout.splitlines()
    passes = done.returncode == 0
    took = f"{time.monotonic() - began:.0f} s"
    print(
        f"{'PASS' if passes else 'FAIL'} {number} {title(STORIES[number])}  ({took}; {lines[-1].strip('= ') if lines else 'no test'})",
        flush=True,
    )
    if not passes:
        with tempfile.NamedTemporaryFile("w", prefix=f"story-{number}-", suffix=".log", delete=False) as log:
            log.write(done.stdout)
        for line in lines:
            if line.startswith(("FAILED ", "ERROR ")):
                print(f"     {line[:200]}")
        print(f"     see {log.name}", flush=True)
    return passes


def main(words: list[str]) -> int:
    """Run the stories that are named, or all. Exit codes: 0 all pass, 1 one does not, 2 there is no such story."""
    chosen = [int(word) if word.isdecimal() else 0 for word in words] or list(STORIES)
    if not set(chosen) <= set(STORIES):
        print(f"there are the stories {', '.join(map(str, STORIES))}", file=sys.stderr)
        return USAGE
    told = [tell(number) for number in chosen]
    return PASS if all(told) else FAIL


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
