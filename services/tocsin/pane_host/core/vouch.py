"""Who speaks from a pane that we made, as far as it can be vouched for."""

from tocsin.contract.messages import PaneStatus

AGENT_WORK = "agent"
"""The kind of background work that is a child agent. A shell or timer was started by the lead, and speaks for it."""


COMMAND = "tocsin"


def is_childs(status: PaneStatus | None) -> bool:
    """True when a call cannot be the lead's own: every call in flight that may be it is a child's, or the lead's turn has
    ended and a child agent still works.

    The command runs inside a tool call, and that call is told of before it begins. Where none is known nothing tells whose
    shell it runs in; inside a running turn it then counts as the lead's.
    """
    if status is None or not status.hooked or not status.turns:
        return False
    if status.calls:
        named = [call for call in status.calls if call.target is not None and call.target.split(" ")[0] == COMMAND]
        return all(call.child is not None for call in named or status.calls)
    has_ended = status.turns[-1].ended_ms is not None
    return has_ended and any(task.running and task.kind == AGENT_WORK for task in status.background)
