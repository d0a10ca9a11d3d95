"""a question and a page of heartbeats, also while somebody types"""

from system.loop.installation import Installation
from system.loop.party import Coordinator, Run
from tocsin.contract.mail import Woken
from tocsin.contract.run import Beaten

PAGE = 50
ASKING = f"""do: beat {PAGE // 2} painting
do: ask Which colour?
do: beat {PAGE // 2} painting
do: await painted
do: report succeeded Painted.
"""


def account(run: Run) -> list[tuple[str, str]]:
    """Every wake of the Run with its cause and where it stands; but not that for ready work which a slow start took back."""
    return [row for row in ((row["cause"], row["state"]) for row in run.wakes()) if row != ("ready", "withdrawn")]


def beats(run: Run) -> int:
    return len([event for event in run.events() if isinstance(event, Beaten)])


def test_a_question_and_a_page_of_heartbeats_are_one_wake_and_heartbeats_are_never_mail(here: Installation):
    boss = Coordinator(here)
    run = boss.create()
    run.add({"id": "paint", "spec": ASKING})
    run.start("paint")
    boss.until(
        "the question has woken it, and it has read it", lambda: [message for message in boss.read() if message["type"] == "question"]
    )
    question = next(message for message in boss.read() if message["type"] == "question")
    assert "Which colour?" in question["body"]
    boss.runs("mail", "reply", question["id"], "blue")
    boss.until("the worker goes on", lambda: beats(run) == PAGE, 120)
    assert "blue" in next(step["out"] for step in here.did(f"{run.id}.paint.1") if step["step"] == "ask")
    boss.until("its turn has ended", lambda: boss.woken() and boss.is_at_rest())
    assert len(boss.woken()) == 1
    assert account(run) == [("question", "delivered")]

    # What comes next shows that nothing of the page was only late.
    here.mark("painted")
    boss.until("the report has woken it", lambda: [message for message in boss.read() if message["type"] == "report"])
    boss.until("its turn has ended", lambda: len(boss.woken()) == 2)
    assert sorted(account(run)) == [("question", "delivered"), ("report", "delivered")]
    assert [message["type"] for message in boss.read()] == ["question", "report"]


def test_while_a_person_types_the_wake_is_held_and_the_draft_is_sent_by_nobody_but_that_person(here: Installation):
    boss = Coordinator(here)
    run = boss.create()
    run.add({"id": "paint", "spec": ASKING})
    boss.person.types("I wonder")
    run.start("paint")

    def typing_on() -> bool:
        boss.person.types(".")
        return any(isinstance(event, Woken) and event.state == "held" for event in run.mail_events())

    boss.until("the wake is held", typing_on)
    assert boss.woken() == []
    boss.person.types(" whether it gets dark\r")
    boss.until("it has read the question", lambda: [message for message in boss.read() if message["type"] == "question"])
    boss.until("its turn has ended", boss.is_at_rest)
    drafts = [step["text"] for step in boss.did("typed") if step["text"].startswith("I ")]
    assert [text.replace(".", "") for text in drafts] == ["I wonder whether it gets dark"]
    assert len(boss.woken()) <= 1  # its own turn may have read the mail before its end was asked
    assert account(run) in ([("question", "delivered")], [("question", "withdrawn")])
    question = next(message for message in boss.read() if message["type"] == "question")
    boss.runs("mail", "reply", question["id"], "blue")
    boss.until("the worker goes on", lambda: beats(run) == PAGE, 120)
    assert len(account(run)) == 1
