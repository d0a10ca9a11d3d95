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
