"""docs/figures.md: the rows of one run, what they reach, and on which machine."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from tocsin.cli.bench.rows import HEAD, Reaches, Row, cells

INTRODUCTION = """# Figures

Made by `make bench ARGS=--write`; not written by hand. A *gate* is what we hold ourselves to, *stretch* what we would like.

- Each ratio is taken against a base of the same run: cases and bases are measured in turn, so that what else the machine does falls on both. The ratio is the median over the rounds of
  p50 / p50; in brackets the least and the greatest of a round. Absolute times are those of this machine at this load, and nothing to compare with others.
- "One Node process" is `tests/bench/peer.mjs`: it takes the same hooks over HTTP, keeps everything in memory, sorts the whole list as the seed of this design has it, and sends lists of the
  same form. It has no bus, no store, nothing that outlives it, and no second process. It sorts at each event; the row without a gate lets it wait 100 ms for more, as our sorter does.
- The bare hops: one POST to an empty route, three NATS PINGs and one raw EVALSHA, one after another: what no design with these parts can do without. The intake waits for its record to be
  on disk (`sync_interval: always`); the bare hops and the Node process write nothing to disk.
- CPU rows count CPU time, the others the clock on the wall. `tocsin bench` measures the same for an installed Tocsin, with all services at work, without Node.
"""


def page(rows: Sequence[Row], about: Mapping[str, object]) -> str:
    """The page. `about`: the machine, its load and the versions."""
    return "\n".join([INTRODUCTION, _machine(about), "", _reached(rows), "", *_table(rows), ""])


def _machine(about: Mapping[str, object]) -> str:
    versions = about["versions"]
    assert isinstance(versions, dict)
    told = ", ".join(f"{name} {number}" for name, number in versions.items())
    before, after = (" ".join(map(str, load)) for load in (about["load_before"], about["load_after"]))  # type: ignore[call-overload]
    day = datetime.now(UTC).strftime("%Y-%m-%d %H:%M")
    busy = (
        f" (above {about['cpus']}: others were at work too)" if max(about["load_before"][0], about["load_after"][0]) > about["cpus"] else ""
    )
    return (
        f"Measured on {day} UTC in {about['seconds']} s: {about['machine']}, {about['cpus']} CPUs, "
        f"load average {before} before and {after} after{busy}; Python {about['python']}, {told}."
    )


def _reached(rows: Sequence[Row]) -> str:
    gated = [row for row in rows if row.reaches is not Reaches.NONE]
    missed = [row for row in gated if row.reaches is Reaches.MISSED]
    short = [row for row in gated if row.reaches is Reaches.GATE]
    lines = [
        f"Of {len(gated)} rows with figures {len(gated) - len(missed)} keep their gate, {len(gated) - len(missed) - len(short)} of them their stretch goal too."
    ]
    lines += [f"Missed: {'; '.join(_named(row) for row in missed)}."] if missed else []
    lines += [f"Gate but not stretch: {'; '.join(_named(row) for row in short)}."] if short else []
    return "\n".join(lines)


def _named(row: Row) -> str:
    return f"`{row.name}` ({row.question})"


def _table(rows: Sequence[Row]) -> list[str]:
    lines = [("name", *HEAD), ("---",) * (len(HEAD) + 1)]
    for row in rows:
        own, *base = cells(row)
        lines.append((f"`{row.name}`", *own))
        lines += [("", f"&nbsp;&nbsp;{one[0].strip()}", *one[1:]) for one in base]
    return [f"| {' | '.join(line)} |" for line in lines]
