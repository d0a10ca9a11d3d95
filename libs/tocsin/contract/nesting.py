"""How deep the JSON of a request may be nested: a limit of our own, because a parser's differs with its version."""

DEPTH_MAX = 32
"""Deepest nesting of lists and objects in a request, its own object counted as one. No verb needs more than six."""


def is_too_deep(value: object) -> bool:
    """Whether decoded JSON is nested deeper than DEPTH_MAX."""
    layer = [value]
    for _ in range(DEPTH_MAX):
        layer = [
            inner
            for outer in layer
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, dict | list)
        ]
    return bool(layer)
