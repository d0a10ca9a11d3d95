"""The page that teaches a coordinator the loop."""

from importlib import resources


def skill_text() -> str:
    """The page, as a skill file: a head with name and description, then Markdown."""
    return (resources.files("tocsin.agents") / "skill.md").read_text(encoding="utf-8")
