"""Display names sort as ICU's root collation sorts them. Each row was compared with ICU 78."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.listing.names import name_key

IN_ORDER = [
    (["", " ", "_", "a"], "nothing first, then space, punctuation, letters"),
    ([*list(" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789"), "a", "A", "b", "B", "z", "Z"], "the whole of ASCII"),
    (["alpha", "Alpha", "ALPHA", "Beta", "Gamma"], "letters without case first, then lower before upper"),
    (["wt-1", "wt-10", "wt-2"], "digits one by one"),
    (["eclair", "éclair", "eclairs", "feta"], "an accent is weaker than a letter"),
    (["eclair", "Eclair", "éclair", "Éclair"], "and stronger than case"),
    (["é", "è", "ê", "ë"], "acute, grave, circumflex, diaeresis"),
    (["aé", "áe"], "of two accents the first decides"),
    (["o", "ø", "oa", "p"], "a struck letter is an accented one"),
    (["ae", "æ", "af"], "a ligature is its letters"),
    (["strasse", "straße", "strast"], "so is a sharp s"),
    (["ih", "iz", "ı", "j"], "what is no accented letter stands behind its letter"),
    (["n", "ŋ", "o"], "also where its name does not say so"),
    (["feature", "feature-login", "feature/login", "featurelogin"], "a prefix first, punctuation before letters"),
    (["a-", "a–", "a."], "a dash beyond ASCII stands behind the hyphen"),
    (["^", "©", "→", "+", "~", "◐", "$", "€", "0"], "signs and arrows, currency behind the other symbols, before digits"),
    (["z", "α", "б", "א", "ع", "か", "漢"], "scripts"),
    (["и", "й", "к"], "a letter of its own, although Unicode takes it apart"),
    (["か", "カ", "が", "き"], "kana by sound, hiragana first, then voiced"),
    (["2", "٣", "4"], "digits of every script by value"),
]


@pytest.mark.parametrize(("names", "why"), IN_ORDER, ids=[why for _, why in IN_ORDER])
def test_order(names, why):
    assert sorted(names, key=name_key) == names
    assert len({name_key(name) for name in names}) == len(names)


def test_a_name_is_the_same_composed_or_not():
    assert name_key("éclair") == name_key(unicodedata.normalize("NFD", "éclair"))


def test_what_nobody_sees_does_not_count():
    assert name_key("a\u200db\u00ad") == name_key("ab")


@given(st.text())
def test_every_name_has_a_key_that_compares_with_every_other(name):
    assert (name_key(name) < name_key("m")) + (name_key(name) == name_key("m")) + (name_key(name) > name_key("m")) == 1


@given(st.text(alphabet="abc -1"))
def test_upper_case_comes_behind_lower_case_and_nothing_between(name):
    upper = name.upper()
    assert name_key(name) <= name_key(upper)
    assert name_key(name)[:2] == name_key(upper)[:2]
