import { z } from "zod";

/** What a message was answered with. An answer that is only a message has no task, and perhaps no context. */
export interface Task {
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** `submitted`, `working`, `completed`, `failed`, `input-required` or another. */
  readonly state: string;
  /** The texts of the artifacts, else of the status message (Agent server in docs/platform.md). */
  readonly reply: string | null;
}

/** An event of a stream. Nothing follows the final one. */
export interface TaskEvent extends Task {
  readonly final: boolean;
}

/** The value as the schema returns it. Throws what its caller reports. */
export type Check = <T>(value: unknown, schema: z.ZodType<T>) => T;

const id = z.string().min(1);
/** Some servers send a plain string. Parts of other kinds are left out. */
const part = z.union([
  z.string(),
  z.looseObject({ kind: z.literal("text").nullish(), text: z.string() }).transform(({ text }) => text),
  z.unknown().transform(() => null),
]);
/** All texts, each on a line of its own; null if there is none. */
const parts = z
  .array(part)
  .nullish()
  .transform((all) => joined(all ?? []));
const saying = z.object({ parts }).nullish();
const status = z.object({ state: z.string(), message: saying });
const artifacts = z.array(z.object({ parts })).nullish();
const taskSchema = z
  .object({ id, contextId: id, status, artifacts })
  .transform(({ id: taskId, contextId, status: { state, message }, artifacts }): Task => {
    const inArtifacts = joined((artifacts ?? []).map((one) => one.parts));
    return { taskId, contextId, state, reply: inArtifacts ?? message?.parts ?? null };
  });
/** A message says all that there is to say. */
const messageSchema = z
  .object({ taskId: id.nullish(), contextId: id.nullish(), parts })
  .transform(({ taskId, contextId, parts: reply }): Task => {
    return { taskId: taskId ?? null, contextId: contextId ?? null, state: "completed", reply };
  });
const update = { taskId: id, contextId: id };
const statusSchema = z.object({ ...update, status, final: z.boolean().nullish() });
const artifact = z.object({ artifactId: z.string().default(""), parts });
const artifactSchema = z.object({ ...update, artifact, append: z.boolean().nullish() });

export function readTask(result: unknown, check: Check): Task {
  return kindOf(result, check) === "message" ? check(result, messageSchema) : check(result, taskSchema);
}

/** Whether nothing more will come: it ended, or waits for its user. */
export function hasEnded({ state }: Task): boolean {
  return !["submitted", "working", "unknown"].includes(state);
}

/** Reads the results of one stream, in order. Undefined for a kind that it does not know. */
export function createEventReader(check: Check): (result: unknown) => TaskEvent | undefined {
  const artifacts = new Map<string, string>();
  return (result) => {
    const kind = kindOf(result, check);
    if (kind === "message" || kind === "task") {
      // A task is whole: its artifacts are in it.
      const task = readTask(result, check);
      return { ...task, final: hasEnded(task) };
    }
    if (kind === "artifact-update") {
      const { taskId, contextId, artifact, append } = check(result, artifactSchema);
      const { artifactId, parts: reply } = artifact;
      const before = append === true ? (artifacts.get(artifactId) ?? "") : "";
      if (reply !== null) artifacts.set(artifactId, before + reply);
      return { taskId, contextId, state: "working", reply, final: false };
    }
    if (kind !== "status-update") return undefined;
    const { taskId, contextId, status: now, final } = check(result, statusSchema);
    const task = { taskId, contextId, state: now.state, reply: now.message?.parts ?? null };
    const reply = task.reply ?? (hasEnded(task) ? joined([...artifacts.values()]) : null);
    // Without `final`, a text may still follow a state.
    return { ...task, reply, final: final === true || (hasEnded(task) && reply !== null) };
  };
}

function kindOf(result: unknown, check: Check): string {
  return check(result, z.looseObject({ kind: z.string().default("task") })).kind;
}

function joined(texts: readonly (string | null)[]): string | null {
  const said = texts.filter((text) => text !== null);
  return said.length === 0 ? null : said.join("\n");
}
