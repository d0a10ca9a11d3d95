"""What all hands work with, and one order in their hands."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tocsin.contract.hosting import HostCommand, HostFact, Saw
from tocsin.contract.ids import HostId, PaneId
from tocsin.contract.messages import PaneStatus, Process
from tocsin.contract.refusals import Refusal
from tocsin.pane_host.core.facts import Terminal
from tocsin.pane_host.core.steps import Account, Standing, Step, standing
from tocsin.pane_host.hands.checkouts import Checkouts
from tocsin.pane_host.hands.journal import Journal, Page
from tocsin.pane_host.hands.made import Cabinet, Made
from tocsin.pane_host.hands.screens import Screens
from tocsin.pane_host.hands.telling import Telling
from tocsin.pane_host.hands.tree import Trees
from tocsin.runtime.clock import Clock
from tocsin.runtime.logs import log
from tocsin.runtime.skew import Skew

T = TypeVar("T")


@dataclass(frozen=True)
class Eyes:
    """What the observing half sees, for the hands to look at."""

    statuses: Callable[[], dict[PaneId, PaneStatus]]
    terminals: Callable[[], dict[PaneId, Terminal]]
    blind: Callable[[], bool]
    """True while some tmux server does not tell what it shows."""
    open: Callable[[], Awaitable[object]]
    """Returns when everything has been looked at once: before that, nothing is known, which is not "nothing is there"."""


@dataclass
class Tools:
    """Everything that sagas use. `state` is the instance's folder, `folder` the hands' own in it.

    `clock` is this machine's, as tmux and files know it; facts are said in the bus' time, by `skew`.
    """

    host: HostId
    clock: Clock
    skew: Skew
    state: Path
    folder: Path
    journal: Journal
    cabinet: Cabinet
    telling: Telling
    trees: Trees
    screens: Screens
    checkouts: Checkouts
    eyes: Eyes
    setup_s_max: float
    panes: dict[PaneId, asyncio.Lock] = field(default_factory=dict)

    def at_pane(self, pane: PaneId) -> asyncio.Lock:
        """Only one hand at a time writes into a pane or closes it."""
        return self.panes.setdefault(pane, asyncio.Lock())


class BrokenOff(Exception):
    """A step began in an earlier life, and whether it took effect cannot be told."""

    def __init__(self, step: Step) -> None:
        super().__init__(step.value)
        self.step = step


class Order:
    """One order in hand: its steps are done once, its facts are told once."""

    def __init__(self, tools: Tools, page: Page) -> None:
        self.tools = tools
        self.page = page
        self.stopped = False
        """A stop for the same Dispatch has come: a start takes back what it has begun."""

    @property
    def command(self) -> HostCommand:
        """What was ordered."""
        return self.page.account.order

    @property
    def account(self) -> Account:
        """What it has come to."""
        return self.page.account

    def told(self, saw: Saw) -> HostFact | None:
        """The fact of that kind, if it was told."""
        return next((fact for fact in self.account.facts if fact.saw is saw), None)

    def tell(self, saw: Saw, **fields: Any) -> int:
        """Tell a fact of this order; one that an earlier life has told stays as it was. Returns its number."""
        for number, fact in enumerate(self.account.facts):
            if fact.saw is saw:
                return number
        return self.tools.telling.tell(self.page, fact_of(self.tools, self.command, saw, **fields))

    def refuse(self, refusal: Refusal, **fields: Any) -> None:
        """Tell that nothing was done, why, and what helps."""
        log("order.refused", dispatch=self.command.dispatch, step=self.command.step, code=refusal.code)
        self.tell(Saw.REFUSED, code=refusal.code.value, detail=refusal.message, next=refusal.advice.next, **fields)

    async def once(self, step: Step, act: Callable[[], Awaitable[dict[str, Any]]], **data: Any) -> dict[str, Any]:
        """Do a step that was not done; its result, now or from an earlier life. Raises BrokenOff where looking again cannot help."""
        match standing(self.account, step):
            case Standing.DONE:
                return self.account.did[step]
            case Standing.UNKNOWN:
                raise BrokenOff(step)
            case Standing.NEW:
                self.page.began(step, **data)
        result = await act()
        self.page.did(step, **result)
        return result


async def uncut(work: Awaitable[T]) -> T:
    """The result of `work`, which goes on to its end also when whoever waits for it is told to stop: it is never half done."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


def fact_of(tools: Tools, command: HostCommand, saw: Saw, **fields: Any) -> HostFact:
    """A fact about what `command` is for."""
    run = fields.pop("run", None) or getattr(command.order, "run", None)
    task = fields.pop("task", None) or getattr(command.order, "task", None)
    return HostFact(
        host=tools.host,
        dispatch=command.dispatch,
        fence=command.fence,
        step=command.step,
        saw=saw,
        at_ms=tools.skew.in_bus_time(tools.clock.now_ms()),
        run=run,
        task=task,
        **fields,
    )


def tell_of(tools: Tools, made: Made, saw: Saw, *, once: bool = True, **fields: Any) -> bool:
    """Tell what was seen of a terminal without having been asked, as a fact of the order that it works for now.

    `once`: not again when that order has told such a fact. Returns whether it was told.
    """
    holder = made.holder
    key = (holder.dispatch, holder.fence, holder.step) if holder else (made.dispatch, made.fence, made.step)
    page = tools.journal.pages.get(key)
    if page is None or (once and any(fact.saw is saw for fact in page.account.facts)):
        return False
    who = {"run": holder.run if holder else made.run, "task": holder.task if holder else made.task}
    tools.telling.tell(page, fact_of(tools, page.account.order, saw, pane=made.pane, path=made.path, **who, **fields))
    return True


def is_process(made: Made, process: Process | None) -> bool:
    """True when `process` is the recorded runner or agent of that terminal; nothing said is nothing denied."""
    return process is None or process in (made.runner, made.process)
