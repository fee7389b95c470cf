import { z } from "zod";

export interface Task {
  readonly taskId: string | null;
  readonly contextId: string | null;
  /** `submitted`, `working`, `completed`, `failed`, `input-required` or another state, spelled as in A2A 0.3. */
  readonly state: string;
  readonly reply: string | null;
}

export interface TaskEvent extends Task {
  readonly final: boolean;
}

export type Check = <T>(value: unknown, schema: z.ZodType<T>) => T;

const id = z.string().min(1);
/** Some servers send a plain string. The question of an interrupted run is a data part. Other parts are left out. */
const part = z.union([
  z.string(),
  z.looseObject({ kind: z.literal("text").nullish(), text: z.string() }).transform(({ text }) => text),
  z.object({ data: z.object({ id, value: z.json() }) }).transform(({ data: { value } }) => textOf(value)),
  z.unknown().transform(() => null),
]);
const parts = z
  .array(part)
  .nullish()
  .transform((all) => joined(all ?? []));
const saying = z.object({ parts }).nullish();
/** A2A 1.0 writes `TASK_STATE_INPUT_REQUIRED` for `input-required`. */
const state = z.string().transform((name) => {
  const [, of1] = /^TASK_STATE_(\w+)$/.exec(name) ?? [];
  if (of1 === undefined) return name;
  const lower = of1.toLowerCase().replaceAll("_", "-");
  return { unspecified: "unknown", cancelled: "canceled" }[lower] ?? lower;
});
const status = z.object({ state, message: saying });
const artifacts = z.array(z.object({ parts })).nullish();
/** The server's own sentence, no reply. */
const COMPLETED = "Task completed successfully";
const history = z.array(z.object({ role: z.string(), taskId: z.string().nullish(), parts })).nullish();
const taskSchema = z
  .object({ id, contextId: id, status, artifacts, history })
  .transform(({ id: taskId, contextId, status: { state, message }, artifacts, history }): Task => {
    const inArtifacts = joined((artifacts ?? []).map((one) => one.parts));
    // A finished task that is read again has its reply in the history, or on older servers nowhere.
    const last = history?.findLast((one) => (one.taskId ?? taskId) === taskId);
    const inHistory = state === "completed" && /agent$/i.test(last?.role ?? "") ? last?.parts : null;
    const inStatus = message?.parts === COMPLETED ? null : message?.parts;
    return { taskId, contextId, state, reply: inArtifacts ?? inHistory ?? inStatus ?? null };
  });
/** A message without a task counts as completed. */
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
  const { kind, value } = opened(result, check);
  return kind === "message" ? check(value, messageSchema) : check(value, taskSchema);
}

export function hasEnded({ state }: Task): boolean {
  return !["submitted", "working", "unknown"].includes(state);
}

export function createEventReader(check: Check): (result: unknown) => TaskEvent | undefined {
  const artifacts = new Map<string, string>();
  let said: string | null = null;
  return (result) => {
    const { kind, value } = opened(result, check);
    if (kind === "message" || kind === "task") {
      // The task contains all of its artifacts.
      const task = readTask(result, check);
      return { ...task, final: hasEnded(task) };
    }
    if (kind === "artifact-update") {
      const { taskId, contextId, artifact, append } = check(value, artifactSchema);
      const { artifactId, parts: reply } = artifact;
      const before = append === true ? (artifacts.get(artifactId) ?? "") : "";
      if (reply !== null) artifacts.set(artifactId, before + reply);
      return { taskId, contextId, state: "working", reply, final: false };
    }
    if (kind !== "status-update") return undefined;
    const { taskId, contextId, status: now, final } = check(value, statusSchema);
    const task = { taskId, contextId, state: now.state, reply: now.message?.parts ?? null };
    if (!hasEnded(task)) {
      said = task.reply ?? said;
      return { ...task, final: final === true };
    }
    const reply = task.reply ?? joined([...artifacts.values()]);
    // Without `final`, a text may still follow the last state. Server 0.4.21 sends the reply in an earlier status only.
    return { ...task, reply: reply ?? said, final: final === true || reply !== null };
  };
}

const MEMBERS = {
  task: "task",
  message: "message",
  statusUpdate: "status-update",
  artifactUpdate: "artifact-update",
} as const;
const named = z.looseObject({ kind: z.string().nullish() });
const envelope = named.refine(
  (given) => Object.keys(MEMBERS).filter((member) => given[member] != null).length < 2,
  "it holds more than one response",
);

/** A2A 0.3 names the kind in the result; 1.0 wraps some results by kind. Without either, the result is a task. */
function opened(result: unknown, check: Check): { readonly kind: string; readonly value: unknown } {
  const { kind } = check(result, named);
  if (kind != null) return { kind, value: result };
  if (Object.hasOwn(result as object, "status")) return { kind: "task", value: result };
  const given = check(result, envelope);
  for (const [member, kind] of Object.entries(MEMBERS)) {
    if (given[member] != null) return { kind, value: given[member] };
  }
  return { kind: "task", value: result };
}

export function textOf(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function joined(texts: readonly (string | null)[]): string | null {
  const said = texts.filter((text) => text !== null);
  return said.length === 0 ? null : said.join("\n");
}

export type AgentCard = Readonly<z.output<typeof cardSchema>>;

export type Protocol = "0.3" | "1.0";

const orNull = z
  .string()
  .nullish()
  .transform((text) => text ?? null);
const modes = z
  .array(z.string())
  .nullish()
  .transform((all) => all ?? []);
/** Other entries are ignored, because this client cannot use them. */
const supported = z.union([
  z.object({ protocolBinding: z.string(), protocolVersion: z.string() }),
  z.unknown().transform(() => null),
]);
export const cardSchema = z
  .object({
    name: z.string(),
    description: orNull,
    url: orNull,
    skills: z
      .array(z.object({ name: z.string() }))
      .nullish()
      .transform((all) => (all ?? []).map(({ name }) => name)),
    defaultInputModes: modes,
    defaultOutputModes: modes,
    supportedInterfaces: z.union([z.array(supported), z.unknown().transform(() => [])]).optional(),
  })
  .transform(({ defaultInputModes: inputModes, defaultOutputModes: outputModes, ...rest }) => {
    const { supportedInterfaces, ...card } = rest;
    return { ...card, inputModes, outputModes, protocol: protocolOf(supportedInterfaces ?? []) };
  });

function protocolOf(interfaces: readonly z.output<typeof supported>[]): Protocol {
  const speaks1 = interfaces.some(
    (one) => one?.protocolBinding.toUpperCase() === "JSONRPC" && /^1(\.|$)/.test(one.protocolVersion.trim()),
  );
  return speaks1 ? "1.0" : "0.3";
}
