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

export const Tocsin = async ({ directory }) => {
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
      if (cut) say(event.type, () => cut(event.properties ?? {}))
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
