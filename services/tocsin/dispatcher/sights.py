"""What this replica sees beside the ledger: panes, hosts and custodies, and since when, in awake time."""

from collections.abc import Callable

from tocsin.contract.custody import CustodyRecorded, CustodyState, MovedTo, Settled, TerminalMade
from tocsin.contract.messages import PaneStatus
from tocsin.contract.run import DispatchState, Restored, run_of_dispatch
from tocsin.dispatcher.core.draft import Custody
from tocsin.dispatcher.core.fleet import Seen
from tocsin.dispatcher.core.run import Dispatch
from tocsin.dispatcher.core.watch import HOST_SILENT_MS, Sight
from tocsin.runtime.clock import Clock

OWED = frozenset({CustodyState.OWNED, CustodyState.RELEASE_UNKNOWN})
"""States of a settled worker's terminal that are no disposition, and will not become one by themselves."""


class Sights:
    """What is seen now. Nothing here is truth: it is gone with the process, and is seen again."""

    def __init__(self, clock: Clock, spoken: Callable[[str], str | None]) -> None:
        self._clock = clock
        self._spoken = spoken
        self._began_ms = clock.awake_ms()
        self._statuses: dict[tuple[str, str], PaneStatus] = {}
        self._heard_ms: dict[str, int] = {}
        self._custodies: dict[str, tuple[CustodyState, bool]] = {}
        self._owed: dict[str, set[str]] = {}  # by Run: its attempts whose custody is open
        self._since: dict[tuple[str, str, object], int] = {}
        self._texts: dict[str, str | None] = {}

    # ------------------------------------------------------------- seeing

    def status(self, status: PaneStatus) -> None:
        """A pane's status."""
        self._statuses[status.host, status.pane] = status

    def heard(self, host: str, said_ms: int, is_live: bool) -> None:
        """Something came from a host. `is_live`: it has just been said; else it is a kept value, as old as it says."""
        now_ms, awake_ms = self._clock.now_ms(), self._clock.awake_ms()
        age_ms = 0 if is_live else max(0, now_ms - said_ms)
        if age_ms < HOST_SILENT_MS:
            self._heard_ms[host] = max(self._heard_ms.get(host, 0), awake_ms - age_ms)

    def custody(self, recorded: CustodyRecorded) -> None:
        """A record of a custody."""
        known = self._custodies.get(recorded.custody)
        state: CustodyState | None = known[0] if known is not None else None
        is_settled = known[1] if known is not None else False
        for event in recorded.events:
            match event:
                case TerminalMade():
                    state = CustodyState.OWNED
                case Settled():
                    is_settled = True
                case MovedTo():
                    state = event.to
                case Restored():
                    state = None  # what the snapshot holds is its own service's to read
        if state is not None:
            self._custodies[recorded.custody] = (state, is_settled)
        else:
            self._custodies.pop(recorded.custody, None)
        self._note_owed(recorded.custody)

    def _note_owed(self, dispatch: str) -> None:
        run = run_of_dispatch(dispatch)
        custody = self._custody_of(dispatch)
        if custody is not None and custody.is_open:
            self._owed.setdefault(run, set()).add(dispatch)
        elif run in self._owed:
            self._owed[run].discard(dispatch)
            if not self._owed[run]:
                del self._owed[run]

    # -------------------------------------------------------------- telling

    def silent_ms(self, host: str) -> int:
        """How long nothing came from a host, awake; from the start of this process when nothing ever did."""
        return self._clock.awake_ms() - self._heard_ms.get(host, self._began_ms)

    def of(self, dispatch: Dispatch) -> Seen:
        """What is seen of an attempt, for reads."""
        return Seen(self._status_of(dispatch), self.silent_ms(dispatch.launch.host), self._custody_of(dispatch.id))

    def owed(self, run: str) -> tuple[str, ...]:
        """The Run's attempts whose custody still needs a disposition."""
        return tuple(self._owed.get(run, ()))

    def custodies(self) -> dict[str, Custody]:
        """Every custody that is known, by its Dispatch."""
        return {name: custody for name in self._custodies if (custody := self._custody_of(name)) is not None}

    def _custody_of(self, dispatch: str) -> Custody | None:
        known = self._custodies.get(dispatch)
        return None if known is None else Custody(known[0], known[1] and known[0] in OWED)

    def sight(self, dispatch: Dispatch) -> Sight:
        """What is seen of an attempt, for decisions."""
        status = self._status_of(dispatch)
        rest_ms = 0
        if status is not None and status.turns and status.turns[-1].ended_ms is not None:
            rest_ms = self._for_ms(dispatch, "rest", (status.turns[-1].number, status.state), None)
        waited_ms = (
            None if dispatch.await_turn_ms is None else self._for_ms(dispatch, "await", dispatch.await_turn_ms, dispatch.await_turn_ms)
        )
        ended_ms = 0
        if dispatch.state is DispatchState.FINISHED_UNVERIFIED:
            ended_ms = self._for_ms(dispatch, "ended", dispatch.since_ms, dispatch.since_ms)
        text = self._text(dispatch) if dispatch.is_reuse else None
        return Sight(status, text, waited_ms, rest_ms, self.silent_ms(dispatch.launch.host), ended_ms)

    def forget(self, unsettled: set[str]) -> None:
        """Drop what was noted of attempts that are settled."""
        self._since = {key: value for key, value in self._since.items() if key[0] in unsettled}
        self._texts = {name: text for name, text in self._texts.items() if name in unsettled}

    def _status_of(self, dispatch: Dispatch) -> PaneStatus | None:
        return self._statuses.get((dispatch.launch.host, dispatch.pane)) if dispatch.pane is not None else None

    def _for_ms(self, dispatch: Dispatch, what: str, mark: object, since_ms: int | None) -> int:
        """Awake time since `mark` was first seen. `since_ms`: when it really began, for one that began before this process."""
        awake_ms = self._clock.awake_ms()
        key = (dispatch.id, what, mark)
        if key not in self._since:
            self._since[key] = awake_ms - (0 if since_ms is None else max(0, self._clock.now_ms() - since_ms))
        return awake_ms - self._since[key]

    def _text(self, dispatch: Dispatch) -> str | None:
        if dispatch.id not in self._texts:
            self._texts[dispatch.id] = self._spoken(dispatch.brief)
        return self._texts[dispatch.id]
