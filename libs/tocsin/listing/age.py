"""How long ago something was, as people say it."""


def age(from_ms: int, now_ms: int) -> str:
    """In one unit: 8s, 12m, 3h, 5d."""
    seconds = max(0, now_ms - from_ms) // 1000
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{seconds // size}{unit}"
    return f"{seconds}s"
