"""One project for all files of `make test-compose`, and its figures at the end."""

from collections.abc import Iterator

import pytest

from system.compose.project import NAME, Project
from system.compose.reports import Reports, Viewer

FIGURES = pytest.StashKey[list[str]]()


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Project]:
    """It is up, from nothing."""
    one = Project(tmp_path_factory.mktemp("story"))
    pytestconfig.stash[FIGURES] = one.figures
    try:
        one.compose("up", "-d", "--build", "--wait")
        yield one
    finally:
        one.compose("down", "-v", check=False)
        one.run("docker", "image", "rm", f"{NAME}:local", f"{NAME}-front:local", check=False)


@pytest.fixture(scope="session")
def viewer(project: Project) -> Iterator[Viewer]:
    """Somebody who looks at the list all the time."""
    with Viewer(project) as one:
        yield one


@pytest.fixture
def reports(project: Project, viewer: Viewer) -> Iterator[Reports]:
    """An agent that asks for somebody again and again, each time in another worktree."""
    with Reports(project, viewer) as one:
        yield one


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """How long things took."""
    terminalreporter.section("figures")
    for line in config.stash.get(FIGURES, []):
        terminalreporter.write_line(line)
