// The order of worktrees by the seed's rules, as a page in one process keeps it: everything is resolved and sorted each time.
// Whoever has no fresh hook asks by its title, whose meaning comes with the pane (permission, working, idle).

export const STALE_AFTER_MS = 30 * 60_000;
export const HISTORY_MAX = 20;
const CREATE_GRACE_MS = 5 * 60_000;
const NEEDS_YOU = 1;
const DONE = 2;
const WORKING = 3;
const IDLE = { cls: 4, at: 0 };

/** When an agent last wanted attention, of its earlier states; null when it never did. */
function priorAttention(history) {
  let latest = 0;
  for (const { state, startedAt, interrupted } of history) {
    const wanted = state === 'blocked' || state === 'waiting' || (state === 'done' && !interrupted);
    if (wanted && Number.isFinite(startedAt) && startedAt > latest) latest = startedAt;
  }
  return latest > 0 ? latest : null;
}

/** What one status asks for; null: nothing. */
function ofHook(hook) {
  if (!Number.isFinite(hook.stateStartedAt)) return null;
  if (hook.state === 'blocked' || hook.state === 'waiting') return { cls: NEEDS_YOU, at: hook.stateStartedAt };
  if (hook.state === 'done') return hook.interrupted ? null : { cls: DONE, at: hook.stateStartedAt };
  return { cls: WORKING, at: priorAttention(hook.stateHistory) ?? hook.stateStartedAt };
}

/** What a title asks for; null: nothing. */
function ofTitle(meaning, worktree, now) {
  if (meaning === 'permission') return { cls: NEEDS_YOU, at: now };
  return meaning === 'working' ? { cls: WORKING, at: worktree.lastActivityAt } : null;
}

/** Class and moment of one worktree: the smallest class of its panes, and the latest moment in it. */
function attention(worktree, tabs, statusesOfTab, now) {
  let best = IDLE;
  for (const tab of tabs) {
    const fresh = new Set();
    const asked = [];
    for (const [pane, hook] of statusesOfTab.get(tab.id) ?? []) {
      if (!(now - hook.updatedAt <= STALE_AFTER_MS)) continue; // also a time that is no number
      fresh.add(pane);
      asked.push(ofHook(hook));
    }
    if (tab.ptyLive && tab.titles) {
      for (const [pane, meaning] of tab.titles) if (!fresh.has(pane)) asked.push(ofTitle(meaning, worktree, now));
    }
    for (const one of asked) {
      if (one && (one.cls < best.cls || (one.cls === best.cls && one.at > best.at))) best = one;
    }
  }
  return best;
}

/** The last activity; for a new worktree the end of its grace, when that is later. */
function recentActivity({ createdAt, lastActivityAt }, now) {
  if (createdAt === undefined || now >= createdAt + CREATE_GRACE_MS) return lastActivityAt;
  return Math.max(lastActivityAt, createdAt + CREATE_GRACE_MS);
}

/**
 * The worktrees, the one that most needs a person first, each with what it asks for.
 * statuses: what hooks told, by `tab:pane`. tabsOf: the tabs of each worktree, by its id.
 */
export function rank(worktrees, tabsOf, statuses, now) {
  const statusesOfTab = new Map();
  for (const [key, hook] of statuses) {
    const colon = key.lastIndexOf(':');
    const tab = key.slice(0, colon);
    const some = statusesOfTab.get(tab);
    if (some) some.push([key.slice(colon + 1), hook]);
    else statusesOfTab.set(tab, [[key.slice(colon + 1), hook]]);
  }
  const asked = new Map(worktrees.map((one) => [one.id, attention(one, tabsOf.get(one.id) ?? [], statusesOfTab, now)]));
  const sorted = [...worktrees].sort((one, other) => {
    const [a, b] = [asked.get(one.id), asked.get(other.id)];
    return (
      a.cls - b.cls ||
      b.at - a.at ||
      recentActivity(other, now) - recentActivity(one, now) ||
      one.displayName.localeCompare(other.displayName)
    );
  });
  return sorted.map((worktree) => ({ worktree, asked: asked.get(worktree.id) }));
}
