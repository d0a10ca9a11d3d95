// What is sent on of an event: enough to know what it means, nothing large.
const plain = ({ type, reason }) => ({ type, reason })
const tool = ({ type, toolCallId, toolName, args, isError }) => ({ type, toolCallId, toolName, args, isError })
const last = ({ type, messages }) => ({ type, messages: (messages ?? []).slice(-1).map(({ role, stopReason }) => ({ role, stopReason })) })
const EVENTS = {
  session_start: plain,
  before_agent_start: ({ type, prompt }) => ({ type, prompt }),
  agent_start: plain,
  tool_execution_start: tool,
  tool_execution_end: tool,
  agent_end: last,
  agent_settled: last,
  session_compact: plain,
  session_shutdown: plain,
}

const IDLE = ["session_start", "agent_end", "agent_settled"]
const OVER = ["before_agent_start", "agent_start", "session_shutdown"]

export default function (pi) {
  for (const [name, cut] of Object.entries(EVENTS)) {
    pi.on(name, async (event, ctx) => {
      try {
        const session = ctx?.sessionManager?.getSessionId?.()
        const cwd = ctx?.cwd ?? process.cwd()
        tell("pi", cwd, name, { ...cut(event ?? {}), session, idle: ctx?.isIdle?.() })
        if (session && IDLE.includes(name)) park("pi", session, cwd, (text) => pi.sendUserMessage(text, { deliverAs: "followUp" }))
        if (session && OVER.includes(name)) leave(session)
      } catch {
        // A shape that we do not know is no event for us.
      }
    })
  }
}
