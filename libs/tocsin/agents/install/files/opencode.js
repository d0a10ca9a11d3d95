// What is sent on of an event: enough to know what it means, nothing large. Events that are not named here stay here.
const session = (p) => ({ sessionID: p.sessionID })
const answer = ({ sessionID, requestID, reply, permissionID, response }) => ({ sessionID, requestID, reply, permissionID, response })
const birth = ({ sessionID, info }) => ({ sessionID, info: { id: info?.id, parentID: info?.parentID, directory: info?.directory } })
const permission = ({ id, sessionID, permission, type, patterns, tool, callID, metadata }) => ({
  id, sessionID, permission, type, patterns, tool, callID,
  metadata: { command: metadata?.command, filepath: metadata?.filepath, filePath: metadata?.filePath },
})
const BUS = {
  "session.created": birth,
  "session.deleted": birth,
  "session.status": (p) => ({ sessionID: p.sessionID, status: { type: p.status?.type } }),
  "session.idle": session,
  "session.compacted": session,
  "session.error": (p) => ({ sessionID: p.sessionID, error: { name: p.error?.name } }),
  "permission.asked": permission,
  "permission.updated": permission,
  "permission.replied": answer,
  "question.asked": (p) => ({ id: p.id, sessionID: p.sessionID, tool: p.tool, questions: p.questions }),
  "question.replied": answer,
  "question.rejected": answer,
}

// A server is no pane's: its environment is that of whoever started it.
const COMMANDS = ["serve", "web", "acp", "attach", "run", "debug", "models", "session", "stats", "export", "import", "github", "pr", "db"]
const command = process.argv.find((word) => COMMANDS.includes(word))
if (command === "serve" || command === "web") for (const name in pane) pane[name] = undefined

// In a pane that Tocsin started, exactly the reporting commands ask nobody; all other rules stay as the user has them.
const REPORTING = ["report", "heartbeat", "ask", "mail", "review"]
const ours = () => Object.fromEntries(REPORTING.flatMap((verb) => [[`tocsin ${verb}`, "allow"], [`tocsin ${verb} *`, "allow"]]))

function allowed(permission) {
  const rules = typeof permission === "string" ? { "*": permission } : { ...permission }
  // The last rule that matches counts. So it is the one for commands or the one for everything, whichever comes later;
  // without either, commands ask nobody as it is.
  const last = Object.keys(rules).findLast((name) => name === "bash" || name === "*")
  if (last === undefined) return permission
  const bash = rules[last]
  // For the same reason ours come behind the one for all commands, and before any narrower one.
  const given = typeof bash === "string" ? { "*": bash } : bash
  const wide = Object.keys(given).indexOf("*")
  const entries = Object.entries(given)
  delete rules.bash
  return { ...rules, bash: Object.fromEntries([...entries.slice(0, wide + 1), ...Object.entries(ours()), ...entries.slice(wide + 1)]) }
}

function allowReporting(config) {
  if (config.permission !== undefined) config.permission = allowed(config.permission)
  for (const agent of Object.values({ ...config.agent, ...config.mode })) {
    if (agent?.permission?.bash !== undefined) agent.permission = allowed(agent.permission)
  }
}

export const Tocsin = async ({ client, directory }) => {
  const children = new Set()
  const rests = (session) => {
    if (!session || children.has(session)) return
    park("opencode", session, directory, (text) => {
      // Never the composer: a person's draft would be glued to the text, and both sent.
      client?.session?.promptAsync({ path: { id: session }, body: { parts: [{ type: "text", text }] } })?.catch?.(() => {})
    })
  }
  const watch = (type, p) => {
    if (type === "session.created" && p.info?.parentID) children.add(p.info.id)
    if (type === "session.idle") rests(p.sessionID)
    if (type === "session.deleted" || (type === "session.status" && p.status?.type !== "idle")) leave(p.sessionID ?? p.info?.id)
  }
  const say = (event, make) => {
    try {
      tell("opencode", directory, event, make())
    } catch {
      // A shape that we do not know is no event for us.
    }
  }
  return {
    event: async ({ event }) => {
      const cut = BUS[event?.type]
      if (!cut) return
      say(event.type, () => cut(event.properties ?? {}))
      watch(event.type, event.properties ?? {})
    },
    config: async (config) => {
      try {
        if (process.env.TOCSIN_FOLDER) allowReporting(config)
      } catch {
        // Rules of a shape that we do not know stay as they are.
      }
    },
    "chat.message": async (input, output) =>
      say("chat.message", () => ({
        input: { sessionID: input.sessionID },
        output: {
          message: { id: output.message?.id, role: output.message?.role },
          parts: (output.parts ?? [])
            .filter(({ type }) => type === "text")
            .map(({ type, text, synthetic }) => ({ type, text, synthetic })),
        },
      })),
    "tool.execute.before": async ({ tool, sessionID, callID }, output) =>
      say("tool.execute.before", () => ({ input: { tool, sessionID, callID }, output: { args: output.args } })),
    "tool.execute.after": async ({ tool, sessionID, callID, args }) =>
      say("tool.execute.after", () => ({ input: { tool, sessionID, callID, args }, output: {} })),
  }
}
