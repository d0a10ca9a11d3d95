"""A list and its rows as plain JSON values: what `--json` prints, and what the page is sent."""

from collections.abc import Mapping
from typing import Any

import msgspec

from tocsin.contract.ids import WorktreeId
from tocsin.contract.messages import Row, WorktreesSorted
from tocsin.contract.notices import Mark


def plain(body: WorktreesSorted) -> dict[str, Any]:
    """A list as JSON. Every row has its `panes`, also when there are none."""
    rows = [plain_row(row) for row in body.worktrees]
    return {
        "version": body.version, "worktrees": rows, "workspace": body.workspace, "birth": body.birth, "at": body.at_ms,
        "restored": body.restored,
    }  # fmt: skip


def plain_row(row: Row) -> dict[str, Any]:
    """A row as JSON."""
    fields: dict[str, Any] = msgspec.to_builtins(row)
    panes = fields.pop("panes", [])
    first = ("rank", "id", "name", "path", "host", "class", "attention_at", "evidence", "reason")
    return {**{field: fields.pop(field) for field in first}, "panes": panes, **fields}


def plain_marks(marks: Mapping[WorktreeId, Mark]) -> dict[str, Any]:
    """A person's marks as JSON, by worktree. `snooze`: until when, or until a prompt later than `prompt_ms`; null: none."""
    return {
        one: {
            "urgent": mark.urgent,
            "snooze": {"until_ms": mark.snooze.until_ms, "prompt_ms": mark.snooze.prompt_ms} if mark.snooze is not None else None,
        }
        for one, mark in marks.items()
    }
