"""What only pane-host reads from its environment."""

import os

from tocsin.runtime.settings import Settings


class PaneHostSettings(Settings):
    """Lists are separated as in PATH."""

    tmux_sockets: str = ""
    """TOCSIN_TMUX_SOCKETS: sockets of tmux servers outside tmux's own folder, which is always looked into."""
    repositories: str = ""
    """TOCSIN_REPOSITORIES: repositories or plain folders to show before anybody works there."""

    def listed(self, value: str) -> tuple[str, ...]:
        """The entries of one of the lists."""
        return tuple(os.path.expanduser(entry) for entry in value.split(os.pathsep) if entry)  # noqa: PTH111
