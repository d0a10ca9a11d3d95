"""`tocsin asyncapi`: the bus contract as AsyncAPI 3, generated from the declarations of subjects and bodies."""

import argparse
import json
from typing import Any

import msgspec

from tocsin.cli.main import DONE
from tocsin.contract.messages import Body
from tocsin.contract.subjects import SUBJECTS, Kept, Subject

ASYNCAPI = "3.0.0"


def arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `asyncapi`."""
    parser.add_argument("--json", action="store_true", help="JSON (also without this: there is no other form)")


def run(args: argparse.Namespace) -> int:
    """Print the document."""
    print(json.dumps(document(), indent=2))
    return DONE


def document() -> dict[str, Any]:
    """The whole contract. Equal declarations give an equal document."""
    subjects = SUBJECTS.values()
    bodies = sorted({subject.body for subject in subjects}, key=lambda body: body.__name__)
    _, schemas = msgspec.json.schema_components(bodies, ref_template="#/components/schemas/{name}")
    return {
        "asyncapi": ASYNCAPI,
        "info": {
            "title": "Tocsin on the bus",
            "version": str(Body.VERSION),
            "description": "Ids stand in subjects percent-encoded: every byte outside [A-Za-z0-9_-]. "
            "Readers ignore fields that they do not know; `v` is the version of a body's schema.",
            "license": {"name": "Apache-2.0"},
        },
        "defaultContentType": "application/json",
        "channels": {subject.name: _channel(subject) for subject in subjects},
        "operations": {
            f"{verb}.{subject.name}": {
                "action": verb,
                "channel": {"$ref": f"#/channels/{subject.name}"},
                "summary": f"{', '.join(parties)}.",
            }
            for subject in subjects
            for verb, parties in (("send", subject.said_by), ("receive", subject.heard_by))
        },
        "components": {"schemas": schemas},
    }


def _channel(subject: Subject[Body]) -> dict[str, Any]:
    body = subject.body.__name__
    return {
        "address": ".".join([subject.name, *(f"{{{key}}}" for key in subject.keys)]),
        "title": subject.about,
        "description": _kept(subject),
        "parameters": {key: {"description": f"The body's `{key}`, as one token."} for key in subject.keys},
        "messages": {body: {"name": body, "payload": {"$ref": f"#/components/schemas/{body}"}}},
        "bindings": {"nats": {"bindingVersion": "0.1.0"}},
    }


def _kept(subject: Subject[Body]) -> str:
    kept = f"Kept: {subject.kept}."
    if subject.kept is Kept.NOT:
        return kept
    limits = f" At most {subject.age_s_max // 3600} h and {subject.bytes_max // 2**20} MiB." if subject.age_s_max else ""
    return f"{kept} Stream {subject.stream}.{limits}"
