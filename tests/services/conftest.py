"""What the tests of hands and panes share: the tmux server that a pane-host finds, and the folder of its instance."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from hands_builders import SERVER
from tmux_server import TmuxServer, the_tmux


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[TmuxServer]:
    """A tmux server of the test's own, under the name that the hands look for."""
    with the_tmux(monkeypatch, SERVER) as made:
        yield made


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """An instance's folder, empty."""
    folder = tmp_path / "state"
    folder.mkdir()
    return folder
