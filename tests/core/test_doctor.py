"""What `tocsin doctor` makes of what it finds."""

from dataclasses import replace

import msgspec
import pytest

from tocsin.cli.doctor import SERVICES, Agent, Facts, Host, Level, Server, examine
from tocsin.runtime.instance import Child, Endpoint, Identity, Keeper

ENDPOINT = Endpoint(
    version="1.1", instance="i", keeper=Keeper.UP, host="h", workspace="default",
    nats_url="nats://127.0.0.1:1", redis_url="unix:///s/socket", ingest_url="http://127.0.0.1:3",
)  # fmt: skip

WELL = Facts(
    state="/s",
    version="1.1",
    endpoint=ENDPOINT,
    runs=True,
    held=True,
    children=(Child(name="sorter", process=Identity(1, "a"), restarts=1, last_exit="SIGKILL"),),
    bus=Server(True, False, "2.15.1", {"store_dir": "/s/nats/store/jetstream", "sync_always": True}),
    clients=(*SERVICES, "tocsin"),
    poison=0,
    store=Server(True, False, "9.1.2", {"maxmemory-policy": "noeviction", "appendonly": "yes"}),
    health=200,
    hooks_reach="http://127.0.0.1:3",
    hook_command=True,
    agents=(Agent("Claude Code", True, True), Agent("Codex", True, True, True), Agent("Gemini", False, False)),
    hosts=(Host("h", "box (/s)", 3, is_this=True), Host("far", "far (/t)", 9, ahead_s=0.4), Host("old", "old (/u)", 9999, left=True)),
)


def wrong(facts: Facts) -> list[tuple[str, str]]:
    return [(finding.check, finding.says) for finding in examine(facts) if finding.level is Level.WRONG]


def test_nothing_is_wrong_where_everything_is_well():
    assert wrong(WELL) == []


def reached_at(**fields: str) -> Endpoint:
    return msgspec.structs.replace(ENDPOINT, **fields)


def a_bus(store_dir: str | None = "/data", sync_always: bool = True) -> Server:
    return Server(True, False, "2.15.1", {"store_dir": store_dir, "sync_always": sync_always})


def a_store(policy: str = "noeviction", appendonly: str = "yes") -> Server:
    return Server(True, False, "9.1.2", {"maxmemory-policy": policy, "appendonly": appendonly})


def a_child(process: Identity | None, last_exit: str) -> tuple[Child, ...]:
    return (Child(name="sorter", process=process, restarts=9, last_exit=last_exit),)


ILLS = [
    # name, what is ill, check, words
    ("no instance", replace(WELL, endpoint=None, runs=False, held=False), "instance", "nothing runs on it"),
    ("orphans hold it", replace(WELL, runs=False), "instance", "still hold it"),
    ("k02: another version", replace(WELL, version="1.2"), "instance", "runs 1.1, this command is 1.2"),
    ("bus away", replace(WELL, bus=Server()), "bus", "does not answer"),
    ("nothing is kept", replace(WELL, bus=a_bus(store_dir=None)), "bus", "JetStream is off"),
    ("k05: the bus stores where the server does by default", replace(WELL, bus=a_bus("/tmp/nats/jetstream")), "bus", "temporary folder"),
    ("k05: the state folder is in memory", replace(WELL, lost="/s lies in memory"), "storage", "lies in memory"),
    ("writes are not synced", replace(WELL, bus=a_bus(sync_always=False)), "bus", "may be lost with the power"),
    ("store away", replace(WELL, store=Server()), "store", "does not answer"),
    ("i08: store evicts", replace(WELL, store=a_store(policy="allkeys-lru")), "store", "drops keys"),
    ("store forgets", replace(WELL, store=a_store(appendonly="no")), "store", "a restart empties it"),
    ("j09: an open bus", replace(WELL, bus=replace(WELL.bus, open_to_all=True)), "links", "bus: anybody who reaches it may read and write"),
    ("j09: an open store", replace(WELL, store=replace(WELL.store, open_to_all=True)), "links", "store: anybody"),
    ("a service is away", replace(WELL, clients=tuple(name for name in SERVICES if name != "sorter")), "services", "sorter is not connected"),
    ("a service does not stay up", replace(WELL, children=a_child(None, "exit code 1")), "services", "sorter is down: exit code 1"),
    ("a service comes and goes", replace(WELL, children=a_child(Identity(1, "a"), "SIGSEGV")), "services", "restarted 9 times"),
    ("an agent does not report", replace(WELL, agents=(Agent("Codex", True, False),)), "hooks", "Codex does not report here"),
    ("an agent's hooks are not trusted", replace(WELL, agents=(Agent("Codex", True, True, False),)), "hooks", "trust its hooks"),
    ("an old hook command", replace(WELL, hook_command=False), "hooks", "of another version"),
    ("a double registration", replace(WELL, doubles=("Claude Code reports Stop twice",)), "hooks", "reports Stop twice"),
    ("hooks report elsewhere", replace(WELL, hooks_reach="http://127.0.0.1:9"), "hooks", "hooks report to http://127.0.0.1:9"),
    ("ingest away", replace(WELL, health=None), "hooks", "does not answer"),
    ("ingest without its bus", replace(WELL, health=503), "hooks", "answers 503"),
    ("the disk is nearly full", replace(WELL, free_bytes=5 * 2**20), "storage", "5 MiB are free"),
    ("events were dropped", replace(WELL, spool_lost=7), "spool", "7 events were dropped"),
    ("a host is away", replace(WELL, hosts=(Host("far", "far (/t)", 64),)), "hosts", "no contact with far (far (/t)) for 64 s"),
    ("a clock is ahead", replace(WELL, hosts=(Host("far", "far (/t)", 1, ahead_s=600.2),)), "hosts", "clock of far is 600 s ahead of the bus'"),
    ("a clock is behind", replace(WELL, hosts=(Host("far", "far (/t)", 1, ahead_s=-90),)), "hosts", "clock of far is 90 s behind the bus'"),
    ("a host name twice", replace(WELL, hosts=(Host("h", "other (/t)", 1),)), "hosts", "h is another machine's too: other (/t)"),
    ("the bus has given up its store", replace(WELL, jetstream="insufficient storage"), "bus", "keeps nothing: insufficient storage"),
    ("a bus that refuses us", replace(WELL, bus=Server(ailment="nats://b refuses our credential")), "bus", "refuses our credential"),
    ("a store without room", replace(WELL, store=Server(True, False, "9", {}, "s cannot write to its disk")), "store", "cannot write"),
    ("another program takes the hooks", replace(WELL, health=404, port_taken=True), "hooks", "another program listens"),
    ("no docker", replace(WELL, docker="no docker command is on PATH"), "docker", "no docker command"),
    ("poison", replace(WELL, poison=2), "poison", "2 messages"),
]  # fmt: skip


@pytest.mark.parametrize(("facts", "check", "words"), [ill[1:] for ill in ILLS], ids=[ill[0] for ill in ILLS])
def test_each_ill_is_named_with_a_remedy(facts: Facts, check: str, words: str):
    found = [finding for finding in examine(facts) if finding.level is Level.WRONG and finding.check == check and words in finding.says]
    assert len(found) == 1
    assert found[0].remedy


def test_what_cannot_be_learned_is_said_and_is_not_called_wrong():
    facts = replace(WELL, clients=None, bus=Server(True, False), store=Server(True, False), blind=("no tmux server runs here",))
    notes = [finding.check for finding in examine(facts) if finding.level is Level.NOTE]
    assert notes == ["bus", "store", "services", "sight", "notify"]
    assert wrong(facts) == []


def test_a_bus_over_the_network_without_encryption_is_named():
    endpoint = reached_at(nats_url="nats://bus.example:4222")
    assert wrong(replace(WELL, endpoint=endpoint)) == [("links", "bus: needs a credential, but over the network, not encrypted")]


def test_no_finding_shows_the_credential_of_an_address():
    endpoint = reached_at(nats_url="nats://me:secret@bus.example:4222", redis_url="redis://:secret@store.example/0")
    for facts in (replace(WELL, endpoint=endpoint), replace(WELL, endpoint=endpoint, bus=Server(), store=Server())):
        assert [finding for finding in examine(facts) if "secret" in finding.says + (finding.remedy or "")] == []


def test_containers_are_mended_by_compose():
    facts = replace(WELL, endpoint=reached_at(keeper=Keeper.COMPOSE), bus=Server(), clients=("status-store",))
    remedies = [finding.remedy for finding in examine(facts)]
    assert "docker compose up -d" in remedies
    assert "docker compose logs sorter" in remedies
    assert "tocsin pane-host --state /s" in remedies


def test_a_machine_that_has_joined_is_mended_by_joining_and_needs_no_store():
    facts = replace(WELL, endpoint=reached_at(keeper=Keeper.JOIN, redis_url=""), bus=Server(True, False), store=Server(), clients=None)
    assert wrong(facts) == []
    (finding,) = [one for one in examine(replace(facts, bus=Server())) if one.check == "bus"]
    assert finding.remedy == "tocsin join"
