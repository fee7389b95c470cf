import { randomUUID } from "node:crypto";
import { ASSISTANT } from "../engine/echo.ts";
import type { Message, Run, RunStatus } from "../engine/runs.ts";

/** The protocol's name of a run's status (seen). */
const STATES: Readonly<Record<RunStatus | "deleted", string>> = {
  pending: "submitted",
  running: "working",
  success: "completed",
  error: "failed",
  interrupted: "input-required",
  deleted: "canceled",
};

/** A run as a task. `id`, `contextId`, `artifacts`, `status`: docs/platform.md, Agent server; the rest is documented. */
export function toWireTask(run: Run, historyLength = 10): object {
  const reply = replyOf(run);
  const messages = run.after.length > 0 ? run.after : [...run.before, ...run.input];
  return {
    kind: "task",
    id: run.id,
    contextId: run.thread.id,
    status: statusOf(run, run.status, false),
    artifacts: reply && [
      {
        artifactId: reply.id,
        name: "Assistant Response",
        description: `Response from assistant ${ASSISTANT.name}`,
        parts: [textPart(reply.content)],
      },
    ],
    history: messages
      .slice(Math.max(0, messages.length - historyLength))
      .map((one) => toWireMessage(run, one)),
  };
}

/** A status event of a stream; `final` marks the last one. */
export function toWireUpdate(run: Run, status: RunStatus | "deleted", final: boolean): object {
  return {
    kind: "status-update",
    taskId: run.id,
    contextId: run.thread.id,
    status: statusOf(run, status, final),
    final,
  };
}

function statusOf(run: Run, status: RunStatus | "deleted", withReply: boolean): object {
  const reply = withReply ? replyOf(run) : undefined;
  const failure: Message | undefined =
    run.error === null ? undefined : { id: `${run.id}-error`, type: "ai", content: run.error };
  const said = reply ?? failure;
  return {
    state: STATES[status],
    timestamp: new Date(run.updatedAt).toISOString(),
    message: said && toWireMessage(run, said),
  };
}

function replyOf(run: Run): Message | undefined {
  const last = run.status === "success" ? run.after.at(-1) : undefined;
  return last?.type === "ai" ? last : undefined;
}

function toWireMessage(run: Run, { id, type, content }: Message): object {
  return {
    kind: "message",
    role: type === "human" ? "user" : "agent",
    parts: [textPart(content)],
    messageId: id || randomUUID(),
    taskId: run.id,
    contextId: run.thread.id,
  };
}

function textPart(text: string): object {
  return { kind: "text", text };
}
