"""What only pane-host reads from its environment."""

import os

from tocsin.runtime.settings import Settings


class PaneHostSettings(Settings):
    """Lists are separated as in PATH."""

    tmux_sockets: str = ""
    """TOCSIN_TMUX_SOCKETS: sockets of tmux servers outside tmux's own folder, which is always looked into."""
    repositories: str = ""
    """TOCSIN_REPOSITORIES: repositories or plain folders to show before anybody works there."""
    worktrees: str = ""
    """TOCSIN_WORKTREES: a folder for all new worktrees; empty: beside each repository, in `<its name>-worktrees`."""
    tmux_server: str = "tocsin"
    """TOCSIN_TMUX_SERVER: name of the tmux server (`tmux -L`) in which agents are started."""
    space_mib_min: int = 256
    """TOCSIN_SPACE_MIB_MIN: with less free space than that (MiB) no worktree is made."""
    setup_s_max: float = 1800
    """TOCSIN_SETUP_S_MAX: a setup command that takes longer (seconds) has failed."""
    notify_desktop: bool = False
    """TOCSIN_NOTIFY_DESKTOP: 1 shows what needs a person on this machine's desktop, also when no page is open."""
    notify_command: str = ""
    """TOCSIN_NOTIFY_COMMAND: a program, with arguments as a shell would split them, that is started for each notice in place of the
    desktop's. It runs without a shell and finds what is told in TOCSIN_NOTICE_TITLE, _TEXT, _URGENT (0 or 1), _CLICK and _ID."""

    def listed(self, value: str) -> tuple[str, ...]:
        """The entries of one of the lists."""
        return tuple(os.path.expanduser(entry) for entry in value.split(os.pathsep) if entry)  # noqa: PTH111
