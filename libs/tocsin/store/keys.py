"""Every Redis key: shape, type, owner, lifetime. No other file spells one."""

from tocsin.contract.ids import token

PREFIX = "tocsin"

PANES = f"{PREFIX}:panes"
"""Hash, owner status-store. `<host>/<pane>` (tokens) -> the pane as JSON. A field goes when its pane is forgotten."""

STATUS_STORE = f"{PREFIX}:status-store"
"""Hash, owner status-store, never expires: the lease (`holder`, `fence`, `until_ms`), the store's `birth`,
`heard_ms` (when the holder was last at work), and `log` and `position` (which log it has read, and how far)."""


def pane_field(host: str, pane: str) -> str:
    """The field of PANES for one pane."""
    return f"{token(host)}/{token(pane)}"


def list_of(workspace: str) -> str:
    """String, owner sorter, never expires: the last published list, served at a cold start."""
    return f"{PREFIX}:list:{token(workspace)}"


def ticket(digest: str) -> str:
    """String, owner console, for a minute: who may have a session for the ticket of this digest, as JSON. Whoever takes it removes it."""
    return f"{PREFIX}:ticket:{token(digest)}"


def day(workspace: str) -> str:
    """Sorted set, owner console, for a day: samples of the list's classes as JSON, scored by their slot of the day. No ids."""
    return f"{PREFIX}:day:{token(workspace)}"


def told(workspace: str, host: str, pane: str) -> str:
    """String, owner console, for a week: when the latest prompt of this pane began (UTC ms) of which the person was told or will be."""
    return f"{PREFIX}:told:{token(workspace)}:{token(host)}:{token(pane)}"


def notices(workspace: str) -> str:
    """Hash, owner console: notices that wait to be told, as JSON by their id. A field goes when its notice is told or over."""
    return f"{PREFIX}:notices:{token(workspace)}"


def courier(workspace: str) -> str:
    """String, owner console, for seconds: which replica tells notices now."""
    return f"{PREFIX}:courier:{token(workspace)}"


def marks(workspace: str) -> str:
    """Hash, owner console, never expires: the person's marks as JSON by worktree. A field goes with its mark."""
    return f"{PREFIX}:marks:{token(workspace)}"


def outcomes(workspace: str) -> str:
    """Hash, owner console, never expires: what became of the last notices, as JSON by the way they went."""
    return f"{PREFIX}:outcomes:{token(workspace)}"


def view(family: str, aggregate: str) -> str:
    """Hash, owner the service of that ledger (`family`: its subject), until purged: one aggregate's view.

    Its parts as JSON by name, and `~log` (birth) and `~seq`: what it is true of.
    """
    return f"{PREFIX}:view:{token(family)}:{token(aggregate)}"


def view_set(family: str) -> str:
    """Set, beside the views: the ids of all of them."""
    return f"{PREFIX}:views:{token(family)}"


def view_marker(family: str) -> str:
    """Hash, beside the views: `life` (which life of the store this is) and `log` (the birth of the log they are of)."""
    return f"{PREFIX}:views-mark:{token(family)}"
