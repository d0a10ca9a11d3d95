"""`tocsin hooks`: have the agents of this machine report here, take that back, or look whether they do."""

import argparse
import http.client
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from tocsin.contract.refusals import Code, Refusal

if TYPE_CHECKING:
    from tocsin.agents.install.installer import Installer
    from tocsin.agents.install.machine import HookCommand, Machine

DONE, WANTING, REFUSED = 0, 1, 3

ANSWER_S_MAX = 2.0
"""How long the endpoint may take to answer a look."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to do, and for which agents."""
    parser.add_argument("action", choices=("install", "uninstall", "status"))
    parser.add_argument("agents", nargs="*", metavar="AGENT", help="claude, codex, ...; none: every agent that is on this machine")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--home", type=Path, metavar="DIR", help="another home than yours; the environment's overrides do not count there")


def run(args: argparse.Namespace) -> int:
    """Do it. Exit codes: 0 done, 1 something is wanting, 3 an agent's settings were refused."""
    from tocsin.agents.install import INSTALLERS
    from tocsin.agents.install.machine import HookCommand, Machine
    from tocsin.cli.main import refuse

    if sys.platform == "win32":
        print("tocsin: it runs on Linux, on macOS and in WSL2, not on Windows itself", file=sys.stderr)
        return REFUSED
    unknown = [name for name in args.agents if name not in INSTALLERS]
    if unknown:
        return refuse(Refusal(Code.UNKNOWN_AGENT, f"no agent {unknown[0]}; there are {', '.join(INSTALLERS)}"), args.json)
    environ = os.environ if args.home is None else {"PATH": os.environ.get("PATH", "")}
    machine = Machine(Path.home() if args.home is None else args.home.absolute(), environ)
    hook = HookCommand(machine.home)
    chosen = [INSTALLERS[name] for name in args.agents or INSTALLERS]
    if args.action == "status":
        return _status(machine, hook, chosen, _state(args.home), args.json)
    return _change(args.action, machine, hook, chosen, named=bool(args.agents), as_json=args.json)


def _state(home: Path | None) -> Path:
    """The folder of the instance that the hooks of that home report to."""
    from tocsin.runtime import instance

    return instance.state_folder(None) if home is None else home.absolute() / ".local" / "state" / "tocsin"


def _change(action: str, machine: "Machine", hook: "HookCommand", chosen: "Sequence[Installer]", *, named: bool, as_json: bool) -> int:
    from tocsin.agents.install.installer import Did, Outcome

    rows: list[dict[str, Any]] = []
    refused = False
    here = [installer for installer in chosen if named or action == "uninstall" or installer.is_here(machine)]
    if action == "install" and here:
        try:
            hook.write()
        except OSError as error:
            from tocsin.cli.main import refuse

            return refuse(Refusal(Code.BROKEN_SETTINGS, f"{hook.path} cannot be written: {error.strerror or error}"), as_json)
    for installer in chosen:
        if installer not in here:
            outcome: Outcome | Refusal = Outcome(Did.NOT_FOUND, installer.file(machine))
        else:
            outcome = installer.install(machine, hook) if action == "install" else installer.uninstall(machine, hook)
        row: dict[str, Any] = {"agent": installer.agent, "label": installer.label}
        if isinstance(outcome, Refusal):
            refused = True
            rows.append(row | {"did": "refused", "refusal": outcome.public()})
        else:
            backup = None if outcome.backup is None else str(outcome.backup)
            rows.append(row | {"did": outcome.did, "file": str(outcome.file), "backup": backup, "todo": list(outcome.todo)})
    if as_json:
        print(json.dumps({"hook": str(hook.path), "agents": rows}))
    else:
        for row in rows:
            print(_told(row))
        if action == "uninstall" and hook.path.exists():
            print(f"The hook command stays for sessions that run now: once they have ended, remove {hook.path}")
    if refused:
        return REFUSED
    if not here:
        print(
            "No agent was found on this machine: none of their programs is on PATH. Name one to install it all the same.", file=sys.stderr
        )
        return WANTING
    return DONE


def _told(row: Mapping[str, Any]) -> str:
    """What was done for an agent, in lines for a person."""
    if row["did"] == "refused":
        refusal = row["refusal"]
        return "\n".join([f"{row['label']}: refused. {refusal['message']}", *(f"  next: {step}" for step in refusal["next"])])
    lines = [f"{row['label']}: {row['did']}" + (f" ({row['file']})" if row["did"] != "not found" else "")]
    if row["backup"]:
        lines.append(f"  the file as it was before: {row['backup']}")
    return "\n".join([*lines, *(f"  {step}" for step in row["todo"])])


def _status(machine: "Machine", hook: "HookCommand", chosen: "Sequence[Installer]", state: Path, as_json: bool) -> int:
    from tocsin.agents.install import double_registrations
    from tocsin.agents.install.endpoint import NAME, read_endpoint
    from tocsin.agents.install.machine import packaged, version_of
    from tocsin.agents.spool import FOLDER, LOST, PATTERN

    agents = [
        {
            "agent": installer.agent,
            "label": installer.label,
            "found": installer.is_here(machine),
            "installed": installer.is_installed(machine, hook),
            "file": str(installer.file(machine)),
        }
        for installer in chosen
    ]
    endpoint = read_endpoint(state)
    spool = state / FOLDER
    told: dict[str, Any] = {
        "hook": {"file": str(hook.path), "version": hook.version(), "newest": version_of(packaged("hook")), "current": hook.is_current()},
        "endpoint": {
            "file": str(state / NAME),
            "url": endpoint and endpoint.url,
            "answers": endpoint is not None and _answers(endpoint.url, endpoint.host),
        },
        "spool": {"events": len(list(spool.glob(PATTERN))), "lost": (spool / LOST).stat().st_size if (spool / LOST).exists() else 0},
        "agents": agents,
        "doubles": [
            {"agent": double.agent, "events": list(double.events), "places": list(double.places), "message": str(double)}
            for double in double_registrations(machine.home, environ=machine.environ)
        ],
    }
    if as_json:
        print(json.dumps(told))
    else:
        print("\n".join(_shown(told)))
    wanting = [one for one in agents if one["found"] and not one["installed"]]
    installed = any(one["installed"] for one in agents)
    broken = installed and not (told["hook"]["current"] and told["endpoint"]["answers"])
    return WANTING if wanting or broken or told["doubles"] or not installed else DONE


def _shown(told: Mapping[str, Any]) -> list[str]:
    """The state of things, in lines for a person."""
    lines = []
    for one in told["agents"]:
        state = "installed" if one["installed"] else "not installed" if one["found"] else "not on this machine"
        lines.append(f"{one['label']}: {state} ({one['file']})")
    hook, endpoint, spool = told["hook"], told["endpoint"], told["spool"]
    if hook["version"] is None:
        lines.append(f"hook command: missing ({hook['file']})")
    else:
        lines.append(
            f"hook command: version {hook['version']}, {'current' if hook['current'] else 'not this one: install again'} ({hook['file']})"
        )
    if endpoint["url"] is None:
        lines.append(f"endpoint: none yet; start tocsin up ({endpoint['file']})")
    else:
        lines.append(f"endpoint: {endpoint['url']} {'answers' if endpoint['answers'] else 'does not answer'}")
    lines.append(f"spool: {spool['events']} waiting, {spool['lost']} dropped")
    return [*lines, *(double["message"] for double in told["doubles"])]


def _answers(url: str, host: str) -> bool:
    """Whether an HTTP server speaks at `url`, whatever it says."""
    address = urlsplit(url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=ANSWER_S_MAX)
    try:
        connection.request("GET", "/", headers={"Host": host})
        connection.getresponse()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True
