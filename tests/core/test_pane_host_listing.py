"""Reading what one tmux call printed: nothing in a title or path can be taken for a boundary, and half an answer is none."""

from hypothesis import given
from hypothesis import strategies as st

from tocsin.pane_host.core.listing import CLIENT_FIELDS, PANE_FIELDS, Client, Pane, arguments, read

MARK = "5e1f0a9b"

text = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30)
pane = st.builds(
    Pane, number=st.integers(0, 99).map("%{}".format), pid=st.integers(1, 99_999), dead=st.booleans(), command=text, title=text, path=text
)


def printed(panes, clients=(), *, pid=42, sessions=1, listed=True) -> str:
    """What tmux prints: each row, then a line's end."""

    def row(kind, *fields):
        return "".join([kind, *(f"{MARK}:{field}" for field in fields), f"{MARK}."])

    rows = [row("server", pid), *[row("session")] * sessions, row("sessions")]
    rows += [row("pane", one.number, one.pid, int(one.dead), one.command, one.title, one.path) for one in panes]
    rows += [row("listed")] if listed else []
    rows += [row("client", one.name, one.created_s, one.activity_s, int(not one.person), 0, one.pane) for one in clients]
    return "".join(f"{one}\n" for one in rows)


@given(st.lists(pane, unique_by=lambda one: one.number))
def test_titles_and_paths_of_any_text_are_read_back_as_they_are(panes):
    listing = read(printed(panes), MARK)
    assert listing.complete
    assert listing.panes == tuple(panes)


@given(st.lists(pane, unique_by=lambda one: one.number), st.data())
def test_an_answer_that_was_cut_short_is_complete_only_if_it_holds_every_pane(panes, data):
    whole = printed(panes, [Client("c", 1, 2, "%0", person=True)])
    listing = read(whole[: data.draw(st.integers(0, len(whole)))], MARK)
    if listing is not None and listing.complete:
        assert listing.panes == tuple(panes)


def test_a_list_without_the_line_behind_the_panes_is_not_complete():
    assert not read(printed([], listed=False), MARK).complete


def test_a_server_without_sessions_has_a_complete_list_of_no_panes():
    # It refuses the list of panes, and all that was asked behind it.
    listing = read(printed([], sessions=0, listed=False), MARK)
    assert (listing.complete, listing.panes, listing.clients) == (True, (), ())


def test_a_pane_of_two_sessions_counts_once():
    one = Pane("%1", 7, dead=False, command="zsh", title="t", path="/")
    assert read(printed([one, one]), MARK).panes == (one,)


def test_a_row_of_another_shape_makes_the_list_incomplete():
    assert not read(printed([]) + f"pane{MARK}:%1{MARK}.\n", MARK).complete
    assert not read(printed([]).replace("listed", "listen"), MARK).complete


def test_no_answer_at_all_is_no_listing():
    assert read("", MARK) is None
    assert read("no server running on /tmp/x\n", MARK) is None


def test_a_program_in_control_mode_and_a_reader_are_no_persons():
    whole = printed([], [Client("a", 1, 2, "%0", person=False), Client("b", 1, 2, "%0", person=True)])
    assert [client.person for client in read(whole, MARK).clients] == [False, True]


def test_everything_that_is_read_is_asked_for():
    asked = " ".join(arguments(MARK))
    assert all(f"#{{{field}}}" in asked for field in (*PANE_FIELDS, *CLIENT_FIELDS))
