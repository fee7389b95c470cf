import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import { UsageError } from "../../errors.ts";
import type { Task, TaskEvent } from "../../platform/agents/a2a-answers.ts";
import type { AgentCard } from "../../platform/agents/a2a-card.ts";
import {
  type ControlPlaneClient,
  type Deployment,
  hasFailed,
  type SandboxTemplate,
} from "../../platform/agents/control-plane.ts";
import { replyTo } from "../../platform/agents/thread-state.ts";
import { STRATEGIES, type Strategy } from "../../platform/agents/threads.ts";
import { deadlineSignal } from "../../platform/http/poll.ts";
import { printableLine } from "../../printable.ts";
import { table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import {
  type AssistantOption,
  assistantOf,
  openControlPlane,
  openDeployment,
  type SourceOption,
  type WithinOption,
  withAssistant,
  withSource,
  withWithin,
} from "../session/platform-access.ts";
import { inSession, type Session } from "../session/session.ts";

export function define(platform: Command): void {
  addTemplateCommands(platform);
  addDeploymentCommands(platform);
  addRunCommand(platform);
  addA2aCommands(platform);
}

export function addTemplateCommands(platform: Command): void {
  const template = platform.command("template").description("show and rename sandbox templates");
  withSource(template.command("get <name>"))
    .description("show one template")
    .action(
      inSession(async (session: Session, options: SourceOption, name: string) => {
        const found = await openControlPlane(session, options).template(name, session);
        session.output.data(found, describeTemplate);
      }),
    );
  withSource(template.command("rename <name> <new-name>"))
    .description("rename a template; the platform allows no other change")
    .action(
      inSession(async (session: Session, options: SourceOption, name: string, to: string) => {
        const renamed = await openControlPlane(session, options).renameTemplate({ name, to }, session);
        session.output.data(renamed, describeTemplate);
      }),
    );
}

function describeTemplate(template: SandboxTemplate): string {
  const rules = (template.proxyConfig?.rules as unknown[] | undefined)?.length ?? 0;
  const limits = Object.entries(template.resources)
    .filter(([, value]) => value !== null)
    .map(([what, value]) => `${what} ${printableLine(value)}`);
  return table(
    ["name", "image", "limits", "volumes", "proxy rules", "id"],
    [[template.name, template.image, limits.join(", "), template.volumeMounts.length, rules, template.id]],
  );
}

/** Cloud deployments take some minutes. */
const WITHIN_MS = 30 * 60_000;

interface WaitOptions extends SourceOption, WithinOption {}

interface BodyOptions extends WaitOptions {
  readonly body?: string;
  readonly wait?: boolean;
}

export function addDeploymentCommands(platform: Command): void {
  const deployment = platform.command("deployment").description("manage deployments and their revisions");
  const withBody = (command: Command): Command =>
    withWithin(
      withSource(command)
        .option("--body <file>", "JSON file with the request body; - reads stdin")
        .option("--wait", "wait until the revision is deployed"),
      WITHIN_MS,
    );
  withBody(deployment.command("create"))
    .description("create a deployment; the body goes to the platform unchanged")
    .action(
      inSession(async (session: Session, options: BodyOptions) => {
        const client = openControlPlane(session, options);
        return finish(session, client, options, await client.createDeployment(bodyOf(options), session));
      }),
    );
  withSource(deployment.command("get <id>"))
    .description("show one deployment and the status of its latest revision")
    .action(
      inSession(async (session: Session, options: SourceOption, id: string) => {
        const client = openControlPlane(session, options);
        const found = await client.deployment(id, session);
        const revisionId = found.latestRevisionId;
        const revision = revisionId && (await client.revision({ deploymentId: id, revisionId }, session));
        session.output.data({ ...found, status: revision ? revision.status : null }, describeDeployment);
      }),
    );
  withBody(deployment.command("update <id>"))
    .description("update a deployment; a changed source creates a revision")
    .action(
      inSession(async (session: Session, options: BodyOptions, id: string) => {
        const client = openControlPlane(session, options);
        const updated = await client.updateDeployment({ id, body: bodyOf(options) }, session);
        return finish(session, client, options, updated);
      }),
    );
  withWithin(withSource(deployment.command("wait <id>")), WITHIN_MS)
    .description("wait until a revision is deployed; exit with 3 if it fails or takes too long")
    .option("--revision <id>", "this revision instead of the latest")
    .action(
      inSession(async (session: Session, options: WaitOptions & { revision?: string }, id: string) => {
        const client = openControlPlane(session, options);
        const found = await client.deployment(id, session);
        return wait(session, client, options, {
          ...found,
          latestRevisionId: options.revision ?? found.latestRevisionId,
        });
      }),
    );
}

async function finish(
  session: Session,
  client: ControlPlaneClient,
  options: BodyOptions,
  deployment: Deployment,
): Promise<number> {
  if (options.wait === true) return wait(session, client, options, deployment);
  session.output.data({ ...deployment, status: null }, describeDeployment);
  return EXIT.done;
}

/** Prints each new status. A failed revision is data and an exit code, not an error. */
async function wait(
  { output, signal }: Session,
  client: ControlPlaneClient,
  { within: withinMs }: WaitOptions,
  deployment: Deployment,
): Promise<number> {
  const { id: deploymentId, latestRevisionId: revisionId } = deployment;
  let status: string | null = null;
  const onStatus = (seen: string) => {
    if (seen !== status) output.note(`${revisionId}: ${seen}`);
    status = seen;
  };
  try {
    if (revisionId === null) throw revisionMissing(deploymentId);
    const of = { deploymentId, revisionId };
    const revision = await client.waitForRevision(of, { withinMs, signal, onStatus });
    return hasFailed(revision) ? EXIT.partlyFailed : EXIT.done;
  } finally {
    // What was created has an id, however the wait ends.
    output.data({ ...deployment, status }, describeDeployment);
  }
}

function revisionMissing(deploymentId: string): UsageError {
  return new UsageError({
    code: "revision_missing",
    message: `Deployment ${deploymentId} has no revision.`,
    next: "Update it with a source, then wait again.",
  });
}

/** Errors: `body_missing`, `body_invalid`. */
function bodyOf({ body: file }: BodyOptions): Record<string, unknown> {
  const next = "Give a file with one JSON object (--body deployment.json), or --body - for stdin.";
  if (file === undefined) throw new UsageError({ code: "body_missing", message: "--body is missing.", next });
  try {
    const body: unknown = JSON.parse(readFileSync(file === "-" ? 0 : file, "utf8"));
    if (typeof body === "object" && body !== null && !Array.isArray(body)) return { ...body };
    throw new Error("it holds no object");
  } catch (error) {
    // Bodies hold secrets, and the parser's message repeats parts of them.
    const reason = error instanceof SyntaxError ? "it is not JSON" : (error as Error).message;
    throw new UsageError({ code: "body_invalid", message: `--body ${file}: ${reason}.`, next });
  }
}

function describeDeployment(deployment: Deployment & { status: string | null }): string {
  const { id, name, latestRevisionId, status } = deployment;
  return table(["id", "name", "latest revision", "status"], [[id, name, latestRevisionId, status]]);
}

/** People rarely wait longer for an assistant. */
export const REPLY_WITHIN_MS = 10 * 60_000;

interface RunOptions extends AssistantOption, WithinOption {
  readonly thread?: string;
  readonly strategy?: Strategy;
}

export function addRunCommand(platform: Command): void {
  withWithin(withAssistant(platform.command("run <text>")), REPLY_WITHIN_MS)
    .description("run an assistant on a thread and show its reply; this costs a trace")
    .option("--thread <id>", "continue this thread instead of a new one")
    .addOption(
      new Option("--strategy <strategy>", "what happens to a run already active on the thread").choices(
        STRATEGIES,
      ),
    )
    .action(inSession(run));
}

interface Shown {
  readonly runId: string;
  readonly threadId: string;
  readonly status: string;
  readonly reply: string | null;
}

async function run(session: Session, options: RunOptions, text: string): Promise<number> {
  const { threads } = openDeployment(session, options);
  const { output } = session;
  const { within: withinMs } = options;
  // For all requests together.
  const signal = deadlineSignal("The reply", { withinMs, signal: session.signal });
  const threadId = options.thread ?? (await threads.createThread({ signal })).threadId;
  const assistantId = assistantOf(session, options);
  const { strategy } = options;
  const created = await threads.createRun({ threadId, assistantId, text, strategy }, { signal });
  output.note(`run ${created.runId} on thread ${threadId}`);
  let shown: Shown = { ...created, reply: null };
  try {
    const ended = await threads.join(created, { withinMs, signal });
    shown = { ...ended, reply: null };
    const hasSucceeded = ended.status === "success";
    if (hasSucceeded || ended.status === "unknown") {
      const { messages } = await threads.state(threadId, { signal });
      shown = { ...ended, reply: replyTo(text, messages, { hasSucceeded }) };
    }
    return hasSucceeded || shown.reply !== null ? EXIT.done : EXIT.partlyFailed;
  } finally {
    // The run was paid for: its ids are shown whatever happens.
    output.data(shown, describeRun);
  }
}

function describeRun({ runId, threadId, status, reply }: Shown): string {
  if (reply !== null) return reply;
  const run = `Run ${runId} on thread ${threadId}`;
  if (status === "rolled_back")
    return `${run} was rolled back: a newer run, or somebody, deleted it while it was waited for.`;
  if (status === "pending" || status === "running") return `${run} has not ended, as far as is known.`;
  return `${run} ended without a reply: ${status}.`;
}

interface A2aOptions extends AssistantOption, WithinOption {
  readonly context?: string;
  readonly task?: string;
}

export function addA2aCommands(platform: Command): void {
  const a2a = platform.command("a2a").description("send agent-to-agent messages");
  const withConversation = (command: Command): Command =>
    withWithin(withAssistant(command), REPLY_WITHIN_MS)
      .option("--context <id>", "continue the conversation of an earlier answer")
      .option("--task <id>", "also name the task of an earlier answer, for servers that ask for it");
  withConversation(a2a.command("send <text>"))
    .description("send a message and show the reply; this costs a trace")
    .action(
      inSession(async (session: Session, options: A2aOptions, text: string) => {
        const { a2a } = openDeployment(session, options);
        const task = await a2a.send(messageOf(session, options, text), waitingOf(session, options));
        return showTask(session, task);
      }),
    );
  withConversation(a2a.command("stream <text>"))
    .description("send a message and show each event as it arrives; this costs a trace")
    .action(inSession(stream));
  withAssistant(a2a.command("task <id>"))
    .description("show status and reply of a task")
    .option("--context <id>", "conversation of the task; some servers require it")
    .action(
      inSession(async (session: Session, options: A2aOptions, taskId: string) => {
        const of = { assistantId: assistantOf(session, options), taskId, contextId: options.context };
        return showTask(session, await openDeployment(session, options).a2a.task(of, session));
      }),
    );
  withAssistant(a2a.command("card"))
    .description("show the agent card of an assistant")
    .action(
      inSession(async (session: Session, options: A2aOptions) => {
        const card = await openDeployment(session, options).a2a.card(assistantOf(session, options), session);
        session.output.data(card, describeCard);
      }),
    );
}

async function stream(session: Session, options: A2aOptions, text: string): Promise<number> {
  const { output } = session;
  const { a2a } = openDeployment(session, options);
  const events: TaskEvent[] = [];
  try {
    const waiting = waitingOf(session, options);
    for await (const event of a2a.stream(messageOf(session, options, text), waiting)) {
      output.note(`${event.state}${event.final ? ", final" : ""}`);
      events.push(event);
    }
  } finally {
    // The ids lead to the task, if the stream was cut.
    const last = events.at(-1);
    if (last !== undefined) output.data(events, () => describeTask(last));
  }
  return exitOfTask(events.at(-1)?.state);
}

function messageOf(session: Session, options: A2aOptions, text: string) {
  return {
    assistantId: assistantOf(session, options),
    text,
    contextId: options.context,
    taskId: options.task,
  };
}

function waitingOf({ output, signal }: Session, { within: withinMs }: A2aOptions) {
  const onContextAlone = () =>
    output.note(
      "The server takes no message for an ended task. The message is sent again with --context alone: leave out --task.",
    );
  return { signal, withinMs, onContextAlone };
}

function showTask({ output }: Session, task: Task): number {
  output.data(task, describeTask);
  return exitOfTask(task.state);
}

const GOING_WELL = ["completed", "input-required", "submitted", "working"];

/** `auth-required` is a refusal; `failed`, `rejected`, `canceled` and what is not known did not work. */
function exitOfTask(state = "unknown"): number {
  if (state === "auth-required") return EXIT.refused;
  return GOING_WELL.includes(state) ? EXIT.done : EXIT.partlyFailed;
}

function describeTask({ taskId, contextId, state, reply }: Task): string {
  return `${reply ?? "(no reply)"}\n\n${table(["state", "context", "task"], [[state, contextId, taskId]])}`;
}

function describeCard(card: AgentCard): string {
  const { name, description, url, skills, inputModes, outputModes, protocol } = card;
  return table(
    ["name", "description", "url", "skills", "input", "output", "protocol"],
    [[name, description, url, skills.join(", "), inputModes.join(", "), outputModes.join(", "), protocol]],
  );
}
