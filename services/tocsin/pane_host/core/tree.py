"""Which processes belong to one agent, told from the process table and the marks in environments; never by name."""

from collections.abc import Collection, Iterable, Mapping

from tocsin.pane_host.core.agent_process import Row, below

MARK = "TOCSIN_MARK"
"""The variable that every process of an agent inherits; its value is drawn by lot for each terminal."""


def family(table: Mapping[int, Row], roots: Iterable[int], marked: Collection[int], spared: Collection[int]) -> set[int]:
    """Every process below `roots` (with them) and below those in `marked`, but for `spared` and what those are below of.

    `spared` is who asks: an agent may have started the very Tocsin that is told to end it.
    """
    found: set[int] = set()
    for root in {*roots, *marked}:
        found |= {row.pid for row in below(table, root)}
    for one in spared:
        pid = one
        while pid in table:
            found.discard(pid)
            if table[pid].parent == pid:
                break
            pid = table[pid].parent
    return found


def has(environment: bytes, variable: str, value: str) -> bool:
    """True when a process's environment (NUL between the variables) has exactly that variable."""
    wanted = f"{variable}={value}".encode()
    return wanted in environment and wanted in environment.split(b"\0")
