import { spawn } from "node:child_process"
import { homedir } from "node:os"
import { join } from "node:path"

// Events go to the hook command one after another, so that they arrive in their order; the agent never waits for it.
// It is given the time of the event, because it may run later. What cannot be sent it keeps itself.
const WAITING_MAX = 256
const waiting = []
let running = false

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
    const hook = spawn(join(homedir(), ".local/share/tocsin/hook"), [one.agent, one.event], {
      cwd: one.cwd,
      // A session of its own: it ends what it was told, also when the agent's terminal is closed.
      detached: true,
      env: { ...process.env, TOCSIN_SENT_MS: String(one.at) },
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

// The agent leaves: what waits goes out at once, its own times keep it in order.
process.on("exit", () => {
  for (const one of waiting.splice(0)) start(one, () => {})
})
