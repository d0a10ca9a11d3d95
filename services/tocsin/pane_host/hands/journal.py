"""The journal of orders on disk: one file per order, one line per entry, each on disk before anything else happens."""

import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import msgspec

from tocsin.contract.hosting import HostCommand, HostFact
from tocsin.contract.ids import digest
from tocsin.pane_host.core.steps import Account, Entry, Step, read_account
from tocsin.runtime.instance import FILE_MODE, FOLDER_MODE

END = ".jsonl"


def plain_name(*parts: str) -> str:
    """A file name for ids of any kind: readable, and unique by a digest of them."""
    shown = "-".join(parts)
    kept = "".join(sign if sign.isascii() and sign.isalnum() else "-" for sign in shown)[:80]
    return f"{kept}-{digest(*parts)[:8]}"


class Page:
    """The journal of one order."""

    def __init__(self, file: Path, account: Account) -> None:
        self._file = file
        self.account = account

    def _write(self, entry: Entry) -> None:
        append(self._file, entry)
        self.account.add(entry)

    def began(self, step: Step, **data: Any) -> None:
        """`step` begins now; `data` is what a later life needs to look whether it took effect."""
        self._write(Entry(began=step, data=data))

    def did(self, step: Step, **data: Any) -> None:
        """`step` has been done, with this result."""
        self._write(Entry(did=step, data=data))

    def fact(self, fact: HostFact) -> int:
        """Note what is to be said; returns its number."""
        self._write(Entry(fact=fact))
        return len(self.account.facts) - 1

    def said(self, number: int) -> None:
        """The bus has that fact on record."""
        self._write(Entry(said=number))

    def over(self) -> None:
        """Nothing is left to do."""
        self._write(Entry(over=True))


def append(file: Path, entry: Entry) -> None:
    """Put one line behind the others, on disk when this returns."""
    handle = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        # A line that a crash has cut off must not swallow this one.
        os.write(handle, b"\n" + msgspec.json.encode(entry) + b"\n")
        os.fsync(handle)
    finally:
        os.close(handle)


class Journal:
    """All orders that this host has taken. One process writes it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
        self.pages: dict[tuple[str, int, str], Page] = {}
        for file in sorted(folder.glob(f"*{END}")):
            account = read_account(file.read_bytes().splitlines())
            if account is not None:
                order = account.order
                self.pages[order.dispatch, order.fence, order.step] = Page(file, account)

    def page(self, command: HostCommand) -> Page | None:
        """What is known of this order."""
        return self.pages.get((command.dispatch, command.fence, command.step))

    def open(self, command: HostCommand) -> Page:
        """A page for a new order: on disk when this returns, so that the bus may forget it."""
        name = plain_name(command.dispatch, str(command.fence), command.step)
        file = self._folder / f"{name}{END}"
        append(file, Entry(order=command))
        page = Page(file, Account(command))
        self.pages[command.dispatch, command.fence, command.step] = page
        return page

    def of_dispatch(self, dispatch: str) -> Iterator[Page]:
        """The pages of all orders for one Dispatch."""
        return (page for page in self.pages.values() if page.account.order.dispatch == dispatch)

    def forget_before(self, at_ms: int, kept: Collection[str]) -> int:
        """Drop pages of orders that were given before `at_ms` and are over and said, but for the Dispatches in `kept`; returns how many."""
        old = [
            key
            for key, page in self.pages.items()
            if page.account.over and not page.account.unsaid and page.account.order.at_ms < at_ms and key[0] not in kept
        ]
        for key in old:
            self.pages.pop(key)._file.unlink(missing_ok=True)
        return len(old)
