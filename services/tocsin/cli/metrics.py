"""`tocsin metrics`: every metric that services show, what it counts, its labels and who says it."""

import argparse
import json

from tocsin.cli.main import DONE
from tocsin.contract.metrics import METRICS
from tocsin.contract.subjects import Party
from tocsin.contract.tally import Label, Metric

HEAD = """# Metrics

Each service shows its own as Prometheus reads them. Names are added, never renamed or given another meaning. Made by `tocsin metrics`.

- Every metric has the label `service` besides its own: in one process (`tocsin up --one-process`) all services share one page.
- No label holds an id, path, name or text: each has the values listed here, and what is none of them shows as `other`.
- Counters begin with their process. Several replicas of a service: add up their counters; gauges of what they share (panes, rows, Runs, mail,
  custodies) are told by each, so take their `max`.
- `process_*` (CPU, memory, open files, start time) come from the client library, on Linux.
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `metrics`."""
    parser.add_argument("--json", action="store_true", help="machine-readable output")


def run(args: argparse.Namespace) -> int:
    """Print them."""
    if args.json:
        print(json.dumps([_told(metric) for metric in METRICS.values()]))
    else:
        print(document(), end="")
    return DONE


def document() -> str:
    """The page docs/metrics.md."""
    rows = [
        f"| `{metric.name}` | {metric.sort} | {metric.about} | {'<br>'.join(map(_label, metric.labels))} | {_sayers(metric)} |"
        for metric in METRICS.values()
    ]
    return "\n".join([HEAD, "| name | kind | what | labels | said by |", "| --- | --- | --- | --- | --- |", *rows]) + "\n"


def _sayers(metric: Metric) -> str:
    return "every service" if Party.ANY_SERVICE in metric.said_by else ", ".join(metric.said_by)


def _label(label: Label) -> str:
    return f"`{label.name}`: {label.about or ', '.join(label.values)}"


def _told(metric: Metric) -> dict[str, object]:
    return {
        "name": metric.name,
        "kind": metric.sort,
        "about": metric.about,
        "labels": {label.name: list(label.values) or label.about for label in metric.labels},
        "buckets_s": list(metric.buckets),
        "said_by": list(metric.said_by),
    }
