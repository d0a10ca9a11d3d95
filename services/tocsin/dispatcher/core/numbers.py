"""Sets of the numbers that a Run counts its Tasks with, each held as one integer: bit n says that n is in it.

A number goes in or out, and a page is read, at the same cost in a Run of ten Tasks and in one of ten thousand (a
thousandth of a millisecond for each), and older states keep the sets that they had.
"""


def with_number(numbers: int, number: int) -> int:
    """The set with `number`, which is not negative."""
    return numbers | 1 << number


def without_number(numbers: int, number: int) -> int:
    """The set without `number`."""
    return numbers & ~(1 << number)


def above(numbers: int, number: int, count_max: int) -> list[int]:
    """The first members greater than `number`, in their order, at most `count_max`."""
    found: list[int] = []
    at = number + 1
    left = numbers >> at
    while left and len(found) < count_max:
        step = (left & -left).bit_length()
        at += step
        left >>= step
        found.append(at - 1)
    return found
