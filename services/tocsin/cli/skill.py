"""`tocsin skill`: the loop in one page, for an agent that is to coordinate. It is a skill file as agents load them."""

import argparse
import json


def arguments(parser: argparse.ArgumentParser) -> None:
    """Only the form."""
    parser.add_argument("--json", action="store_true", help="print JSON: name, description and text")


def run(args: argparse.Namespace) -> int:
    """Print the page; it needs no instance. Exit code 0."""
    from tocsin.agents.skill import skill_text

    text = skill_text()
    if args.json:
        head, _, body = text.removeprefix("---\n").partition("---\n")
        fields = dict(line.split(": ", 1) for line in head.splitlines())
        print(json.dumps({"name": fields["name"], "description": fields["description"], "text": body.strip() + "\n"}))
    else:
        print(text, end="")
    return 0
