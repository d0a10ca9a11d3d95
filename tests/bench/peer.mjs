// One process that does without a bus and a store: it takes the hooks that hook-ingest takes, keeps everything in memory,
// sorts the whole list as the seed does and sends it, in the form of our lists, a line each, to whoever has asked for GET /lists.
//
// peer.mjs PORT_FILE WINDOW_MS     0: a list for each event; else at most one in that time, the first after quiet at once
import { createServer } from 'node:http';
import { writeFileSync } from 'node:fs';
import { HISTORY_MAX, rank } from './seed_sort.mjs';

const [portFile, windowMs] = [process.argv[2], Number(process.argv[3])];
const STATES = { UserPromptSubmit: 'working', PermissionRequest: 'blocked', Stop: 'done' };
const CLASSES_IDLE = 4;

const worktrees = [];
const tabsOf = new Map();
const statuses = new Map();
const readers = new Set();
let version = 0;
let saidAt = -Infinity;
let timer = null;

/** Hold what an agent in `pane` says from its folder. */
function hear({ hook_event_name: event, session_id: session }, pane, cwd, now) {
  const state = STATES[event];
  if (!state) return;
  let worktree = worktrees[tabsOf.get(cwd)?.number];
  if (!worktree) {
    worktree = { id: cwd, displayName: cwd.slice(cwd.lastIndexOf('/') + 1), lastActivityAt: now };
    tabsOf.set(cwd, Object.assign([{ id: pane }], { number: worktrees.push(worktree) - 1 }));
  }
  worktree.lastActivityAt = now;
  const key = `${pane}:1`;
  const before = statuses.get(key);
  const changed = !before || before.state !== state;
  const stateHistory = before?.stateHistory ?? [];
  if (before && changed) {
    stateHistory.push({ state: before.state, startedAt: before.stateStartedAt, interrupted: before.interrupted });
    if (stateHistory.length > HISTORY_MAX) stateHistory.shift();
  }
  statuses.set(key, { state, stateStartedAt: changed ? now : before.stateStartedAt, updatedAt: now, stateHistory, session, interrupted: false });
}

/** Sort everything and send it. */
function say() {
  timer = null;
  const now = Date.now();
  saidAt = now;
  version += 1;
  const rows = rank(worktrees, tabsOf, statuses, now).map(({ worktree, asked }, index) => ({
    rank: index + 1, id: worktree.id, name: worktree.displayName, path: worktree.id, host: 'bench', class: asked.cls,
    attention_at: asked.cls === CLASSES_IDLE ? 0 : asked.at, evidence: 'observed', reason: 'works on its turn',
    panes: tabsOf.get(worktree.id).map((tab) => {
      const hook = statuses.get(`${tab.id}:1`);
      return {
        id: tab.id, agent: 'claude', state: hook.state, evidence: 'observed', since_ms: hook.stateStartedAt,
        reason: 'works on its turn', session: hook.session,
      };
    }),
    active_at: worktree.lastActivityAt,
  }));
  const line = `${JSON.stringify({ workspace: 'default', birth: 'peer', version, at_ms: now, worktrees: rows })}\n`;
  for (const reader of readers) reader.write(line);
}

/** An event has come: the list is due at once, or when the window is over. */
function due() {
  if (windowMs === 0) say();
  else if (timer === null) {
    const wait = saidAt + windowMs - Date.now();
    if (wait <= 0) say();
    else timer = setTimeout(say, wait);
  }
}

const server = createServer((request, response) => {
  if (request.method === 'GET' && request.url === '/lists') {
    response.writeHead(200, { 'content-type': 'application/x-ndjson' });
    response.flushHeaders();
    readers.add(response);
    response.on('close', () => readers.delete(response));
    return;
  }
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    hear(JSON.parse(Buffer.concat(parts)), request.headers['x-tocsin-pane'], request.headers['x-tocsin-cwd'], Date.now());
    response.writeHead(204).end();
    due();
  });
});
server.keepAliveTimeout = 0;
server.listen(0, '127.0.0.1', () => writeFileSync(portFile, String(server.address().port)));
