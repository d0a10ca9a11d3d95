"""What a viewer is sent leads from the list it has to the list as it stands, whatever happened in between."""

from hypothesis import given
from hypothesis import strategies as st

from console_builders import a_list, a_row
from tocsin.console.core.lists import Editions, change, counts, name_of, whole
from tocsin.listing.orders import KEYS, SMART

SORTS = (SMART, *KEYS)
NAMES = ("api", "docs", "web", "zeta", "Alpha")


def apply(had: dict, told: dict) -> dict:
    """What a page does with a change."""
    rows = {one: row for one, row in had["rows"].items() if one not in told["removed"]}
    rows |= {row["id"]: row for row in told["changed"]}
    return {"rows": rows, "order": told.get("order", had["order"])}


def held(told: dict) -> dict:
    return {"rows": {row["id"]: row for row in told["worktrees"]}, "order": [row["id"] for row in told["worktrees"]]}


def without_rank(state: dict) -> dict:
    return {"order": state["order"], "rows": {one: {**row, "rank": 0} for one, row in state["rows"].items()}}


rows = st.lists(st.sampled_from(NAMES), unique=True).flatmap(
    lambda names: st.tuples(*(st.builds(a_row, st.just(name), st.integers(1, 4), active_at=st.integers(0, 3)) for name in names))
)


@given(rows, rows, st.sampled_from(SORTS))
def test_a_change_leads_from_any_list_to_any_other_under_every_order(before, after, sort):
    first, last = a_list(*before, version=1), a_list(*after, version=9)
    got = apply(held(whole(first, sort)), change(first, last, sort))
    assert without_rank(got) == without_rank(held(whole(last, sort)))


def test_a_row_that_was_only_passed_by_another_is_not_sent_again():
    api, docs = a_row("api"), a_row("docs")
    told = change(a_list(api, docs), a_list(docs, api, version=2), SMART)
    assert told["changed"] == []
    assert told["order"] == ["docs-id", "api-id"]


def test_an_order_that_stays_is_not_sent_again():
    told = change(a_list(a_row("api")), a_list(a_row("api", reason="other"), version=2), SMART)
    assert "order" not in told
    assert [row["reason"] for row in told["changed"]] == ["other"]


def test_rows_keep_the_rank_of_the_smart_order_under_every_other():
    told = whole(a_list(a_row("web"), a_row("api")), "name")
    assert [(row["name"], row["rank"]) for row in told["worktrees"]] == [("api", 2), ("web", 1)]


def test_an_edition_is_named_by_its_birth_and_version_and_found_again():
    editions = Editions()
    lists = [a_list(a_row("api"), version=version, birth="b7") for version in (1, 2)]
    for one in lists:
        editions.hear(one)
    assert name_of(lists[0]) == "b7.1"
    assert editions.find("b7.1") is lists[0]
    assert editions.latest is lists[1]
    assert editions.find("b7.3") is None
    assert editions.find(None) is None


def test_so_many_rows_are_remembered_and_no_more_but_the_latest_list_always_is():
    editions = Editions(rows_max=3)
    for version in (1, 2, 3):
        editions.hear(a_list(a_row("api"), version=version))
    assert editions.find("b1.1") is not None
    large = a_list(*(a_row(name) for name in NAMES), version=4)
    editions.hear(large)
    assert editions.latest is large
    assert [editions.find(f"b1.{version}") for version in (1, 2, 3)] == [None, None, None]


def test_a_list_that_is_said_again_takes_no_more_room():
    editions = Editions(rows_max=2)
    editions.hear(a_list(a_row("api"), version=1))
    for _ in range(5):
        editions.hear(a_list(a_row("api"), version=2))
    assert editions.find("b1.1") is not None


def test_counts_are_by_class():
    assert counts(a_list(a_row("a", 1), a_row("b", 3), a_row("c", 3), a_row("d"))) == (1, 0, 2, 1)
