import { randomUUID } from "node:crypto";
import { ASSISTANT } from "../engine/echo.ts";
import type { Message, Run, RunStatus } from "../engine/runs.ts";
import type { Dialect } from "./rpc.ts";

type Version = Dialect["version"];

/** The protocol's name of a run's status (seen). */
const STATES: Readonly<Record<RunStatus | "deleted", string>> = {
  pending: "submitted",
  running: "working",
  success: "completed",
  error: "failed",
  interrupted: "input-required",
  deleted: "canceled",
};

/** Whether nothing more comes of a task: it takes no further message. */
export function isOver(run: Run): boolean {
  return run.isRolledBack || run.status === "success" || run.status === "error";
}

/**
 * A run as a task. `id`, `contextId`, `artifacts`, `status`: docs/platform.md, Agent server; the rest is documented. One that
 * was rolled back is canceled (documented).
 */
export function toWireTask(run: Run, version: Version, historyLength = 10): object {
  const reply = replyOf(run);
  const messages = run.after.length > 0 ? run.after : [...run.before, ...run.input];
  return {
    kind: "task",
    id: run.id,
    contextId: run.thread.id,
    status: statusOf(run, run.isRolledBack ? "deleted" : run.status, { withReply: false, version }),
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
      .map((one) => toWireMessage(run, one, version)),
  };
}

/** A status event of a stream; `final` marks the last one. */
export function toWireUpdate(
  run: Run,
  status: RunStatus | "deleted",
  { final, version }: { final: boolean; version: Version },
): object {
  return {
    kind: "status-update",
    taskId: run.id,
    contextId: run.thread.id,
    status: statusOf(run, status, { withReply: final, version }),
    final,
  };
}

function statusOf(
  run: Run,
  status: RunStatus | "deleted",
  { withReply, version }: { withReply: boolean; version: Version },
): object {
  const reply = withReply ? replyOf(run) : undefined;
  const failure: Message | undefined =
    run.error === null ? undefined : { id: `${run.id}-error`, type: "ai", content: run.error };
  const said = reply ?? failure;
  return {
    state: spelled("TASK_STATE", STATES[status], version),
    timestamp: new Date(run.updatedAt).toISOString(),
    message: said && toWireMessage(run, said, version),
  };
}

function replyOf(run: Run): Message | undefined {
  const last = run.status === "success" ? run.after.at(-1) : undefined;
  return last?.type === "ai" ? last : undefined;
}

/** Only the spelling of enums differs by version (docs/platform.md, Agent server). */
function spelled(prefix: "ROLE" | "TASK_STATE", value: string, version: Version): string {
  return version === "0.3" ? value : `${prefix}_${value.replaceAll("-", "_").toUpperCase()}`;
}

function toWireMessage(run: Run, { id, type, content }: Message, version: Version): object {
  return {
    kind: "message",
    role: spelled("ROLE", type === "human" ? "user" : "agent", version),
    parts: [textPart(content)],
    messageId: id || randomUUID(),
    taskId: run.id,
    contextId: run.thread.id,
  };
}

function textPart(text: string): object {
  return { kind: "text", text };
}
