"""Commits as everybody knows them: `HEAD` or a branch means another commit in the next folder, and tomorrow in this one."""

import subprocess

GIT_S_MAX = 5.0


def full(name: str = "HEAD") -> str | None:
    """The full name of the commit that git in this folder finds under `name`; None when it is no checkout or git does not say."""
    command = ["git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=GIT_S_MAX)
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
