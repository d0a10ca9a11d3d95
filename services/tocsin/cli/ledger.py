"""`tocsin ledger verify|rebuild`: is what is on record whole, and do the views say the same? And the views made anew from it."""

import argparse
import importlib
import json
import os
from importlib.metadata import version
from typing import Any

from tocsin.cli import reading
from tocsin.cli.main import DONE, WANTING, refuse
from tocsin.contract.refusals import Code, Refusal
from tocsin.listing.find import clean

FAMILIES = {
    "run": "tocsin.dispatcher.store",
    "mail": "tocsin.mailbox.store",
    "custody": "tocsin.release_accountant.service",
}
"""Each ledger, and the module whose FAMILY tells how it is folded."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do, and with which ledgers."""
    parser.add_argument("action", choices=("verify", "rebuild"), help="look, or write every view anew from the log")
    parser.add_argument("ledgers", nargs="*", metavar="LEDGER", help=f"{', '.join(FAMILIES)} (default: all)")
    reading.arguments(parser)


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0 whole, 1 something is wrong, 3 refused, 4 the bus or the store is away."""
    unknown = [name for name in args.ledgers if name not in FAMILIES]
    if unknown:
        return refuse(Refusal(Code.NOT_FOUND, f"no ledger {unknown[0]}; there are {', '.join(FAMILIES)}"), args.json)
    redis_url = store_url(args)
    if isinstance(redis_url, Refusal):
        return refuse(redis_url, args.json)

    async def work(place: reading.Place) -> int:
        from tocsin.contract.faults import Unavailable
        from tocsin.store.connection import open_store

        try:
            async with reading.connect(place) as bus, open_store(redis_url, place.state) as redis:
                results = [await _one(args.action, bus, redis, name) for name in args.ledgers or FAMILIES]
        except Unavailable as error:
            return refuse(Refusal(Code.UNAVAILABLE, str(error)), args.json)
        if args.json:
            print(json.dumps({"ledgers": results}))
        else:
            for result in results:
                _tell(result)
        return WANTING if any(not result["whole"] for result in results) else DONE

    return reading.with_place(args, work)


def store_url(args: argparse.Namespace) -> str | Refusal:
    """Where the views are: REDIS_URL, else what the instance's endpoint file says. Refuses: unavailable."""
    from tocsin.runtime import instance

    if url := os.environ.get("REDIS_URL"):
        return url
    reached = instance.reach(instance.state_folder(args.state), version("tocsin"))
    return reached if isinstance(reached, Refusal) else reached.redis_url


async def _one(action: str, bus: Any, redis: Any, name: str) -> dict[str, Any]:
    from tocsin.ledger.verify import Fault, rebuild, verify
    from tocsin.store.views import Views

    family = importlib.import_module(FAMILIES[name]).FAMILY
    views = Views(redis, family.subject.name)
    if action == "rebuild":
        return {"ledger": name, "rebuilt": await rebuild(bus, views, family), "whole": True}
    aggregates, records, findings = await verify(bus, views, family)
    # Behind by a moment is how a view is while its service writes; a service that is gone writes it when it comes back.
    whole = all(finding.fault is Fault.BEHIND for finding in findings)
    told = [{"id": finding.id, "fault": finding.fault, "detail": finding.detail} for finding in findings]
    return {"ledger": name, "aggregates": aggregates, "records": records, "findings": told, "whole": whole}


def _tell(result: dict[str, Any]) -> None:
    if "rebuilt" in result:
        print(f"{result['ledger']}: {result['rebuilt']} views written anew from the log")
        return
    findings = result["findings"]
    print(f"{result['ledger']}: {result['records']} records of {result['aggregates']} aggregates, {len(findings) or 'nothing'} to tell")
    for finding in findings:
        print(f"  {clean(finding['id'])}: {finding['fault']}: {finding['detail']}")
    if any(finding["fault"] in ("wrong", "missing") for finding in findings):
        print(f"  next: tocsin ledger rebuild {result['ledger']}")
