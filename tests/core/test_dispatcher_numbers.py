"""Sets of numbers as integers."""

from hypothesis import given
from hypothesis import strategies as st

from tocsin.dispatcher.core.numbers import above, with_number, without_number

NUMBERS = st.sets(st.integers(0, 400))


def packed(numbers):
    """The set as one integer."""
    bits = 0
    for number in numbers:
        bits = with_number(bits, number)
    return bits


@given(NUMBERS, NUMBERS, st.integers(0, 400), st.integers(0, 30))
def test_a_page_holds_the_next_members_in_their_order(numbers, gone, number, count_max):
    bits = packed(numbers)
    for one in gone:
        bits = without_number(bits, one)
    left = sorted(numbers - gone)
    assert above(bits, number, count_max) == [one for one in left if one > number][:count_max]
    assert bits.bit_count() == len(left)
