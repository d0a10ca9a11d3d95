"""Into which pane a person last typed.

tmux tells when a client was last active (keys, and the mouse), in steps of one second, but not where: that was
the pane before the client. Text that a program sends moves nothing.
"""

from collections.abc import Iterable, Mapping

from tocsin.pane_host.core.listing import Client

Before = Mapping[tuple[str, int], Client]
"""The clients of the look before, by name and moment of attaching: names are used again."""


def remembered(clients: Iterable[Client]) -> Before:
    """The clients as the next look needs them."""
    return {(client.name, client.created_s): client for client in clients}


def typed(before: Before, clients: Iterable[Client]) -> dict[str, int]:
    """Pane number to the UTC milliseconds of the last key there, for panes that had one since the look before.

    A client that has moved to another pane meanwhile had its first key in the pane it came from; whether one followed
    in the new pane cannot be known, and a look at a pane is no key. A client seen for the first time counts if it was
    active after it attached.
    """
    keys: dict[str, int] = {}
    for client in clients:
        if not client.person:
            continue
        earlier = before.get((client.name, client.created_s))
        if client.activity_s <= (earlier.activity_s if earlier else client.created_s):
            continue
        pane = earlier.pane if earlier else client.pane
        keys[pane] = max(keys.get(pane, 0), client.activity_s * 1000)
    return keys
