import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

// Events go to the hook command one after another, so that they arrive in their order; the agent never waits for it.
// It is given the time of the event, because it may run later. What cannot be sent it keeps itself.
const WAITING_MAX = 256
const waiting = []
let running = false
// What names a pane in our environment. Whoever finds that it is not this pane's takes it out.
const pane = { TOCSIN_PANE: process.env.TOCSIN_PANE, TMUX: process.env.TMUX, TMUX_PANE: process.env.TMUX_PANE }

function tell(agent, cwd, event, payload) {
  try {
    // A server that hangs costs a second an event: rather lose the oldest than grow.
    if (waiting.length >= WAITING_MAX) waiting.shift()
    waiting.push({ agent, cwd, event, body: JSON.stringify(payload), at: Date.now() })
    if (!running) next()
  } catch {
    // Whatever is wrong with us is not the agent's trouble.
  }
}

function next() {
  const one = waiting.shift()
  running = one !== undefined
  if (running) start(one, next)
}

function start(one, then) {
  let over = false
  const after = () => {
    if (!over) {
      over = true
      then()
    }
  }
  try {
    const hook = call(one.agent, one.event, one.cwd, {
      // A session of its own: it ends what it was told, also when the agent's terminal is closed.
      detached: true,
      env: { TOCSIN_SENT_MS: String(one.at) },
      stdio: ["pipe", "ignore", "ignore"],
    })
    hook.on("error", after)
    hook.on("close", after)
    hook.stdin.on("error", () => {})
    hook.stdin.end(one.body)
    hook.unref()
  } catch {
    after()
  }
}

function call(agent, word, cwd, options) {
  const env = Object.fromEntries(Object.entries({ ...process.env, ...pane, ...options.env }).filter(([, value]) => value !== undefined))
  return spawn(join(homedir(), ".local/share/tocsin/hook"), [agent, word], { ...options, cwd, env })
}

// While a session is idle, one call of the hook command waits for a reason to wake it, and gives it to `wake`.
// It holds nothing up, and ends with the session's next turn, with the agent, or when there is nothing to wait for.
const TEXT_MAX = 4096
const parked = new Map()

function park(agent, session, cwd, wake) {
  leave(session)
  try {
    const hook = call(agent, "park", cwd, { stdio: ["pipe", "ignore", "pipe"] })
    let text = ""
    parked.set(session, hook)
    hook.stderr.on("data", (some) => {
      if (text.length < TEXT_MAX) text += some
    })
    hook.on("error", () => {})
    hook.on("close", (code) => {
      if (parked.get(session) !== hook) return
      parked.delete(session)
      if (code === 2 && text.trim()) wake(text.trim())
    })
    hook.stdin.on("error", () => {})
    hook.stdin.end(JSON.stringify({ session_id: session }))
    hook.unref()
    hook.stderr.unref?.()
  } catch {
    // Then it is woken some other way.
  }
}

function leave(session) {
  const hook = parked.get(session)
  parked.delete(session)
  hook?.kill()
}

process.on("exit", () => {
  for (const session of [...parked.keys()]) leave(session)
})

// The agent leaves: what waits goes out at once, its own times keep it in order.
process.on("exit", () => {
  for (const one of waiting.splice(0)) start(one, () => {})
})
