// The ranked list in Node: the last one on connect, then each change, and a line when a worktree begins to need you.
//   npm install @nats-io/transport-node && node subscriber.mjs [workspace]
import { connect } from "@nats-io/transport-node";
import { readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

const workspace = process.argv[2] ?? "default";
const state = process.env.TOCSIN_STATE ?? join(homedir(), ".local/state/tocsin");
const [user, pass] = readFileSync(join(state, "nats-reader.credential"), "utf8").trim().split(":");
const { nats_url: servers } = JSON.parse(readFileSync(join(state, "endpoint.json"), "utf8"));
const bus = await connect({ servers, user, pass, maxReconnectAttempts: -1 });

let newest = { birth: "", version: 0 };
function show(list) {
  // Versions grow within one birth of the list; what is not newer was overtaken by what is shown already.
  if (list.birth === newest.birth && list.version <= newest.version) return;
  newest = list;
  console.log(JSON.stringify(list.worktrees.map((row) => row.name)));
}

// First subscribe, then ask for the last list: so no change falls between the two.
const changes = bus.subscribe(`worktree.sorted.${workspace}`);
const raised = bus.subscribe(`attention.raised.${workspace}`);
const last = () => bus.request(`$JS.API.DIRECT.GET.WORKTREE_SORTED.worktree.sorted.${workspace}`);
const listed = (message) => message.data.length > 0 && show(message.json());
listed(await last());

(async () => {
  for await (const message of raised) console.error(`${message.json().name} needs you: ${message.json().reason}`);
})();
(async () => {
  // What was said during a cut is missed, so the last list is asked for again.
  for await (const status of bus.status()) if (status.type === "reconnect") listed(await last());
})();
for await (const message of changes) show(message.json());
