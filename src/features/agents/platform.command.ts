import { readFileSync } from "node:fs";
import { type Command, Option } from "commander";
import type { PlatformAccess } from "../../core/base/config.ts";
import { UsageError } from "../../core/base/errors.ts";
import { NO_TEXT, textOf } from "../../core/base/given-file.ts";
import { NestedTooDeepError, parseJson } from "../../core/base/json.ts";
import { Duration } from "../../core/base/luxon.ts";
import { printableLine } from "../../core/base/printable.ts";
import { EXIT } from "../../terminal/exit.ts";
import { parseDuration } from "../../terminal/options.ts";
import { tableOf } from "../../terminal/output.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import type { AgentCard, Task, TaskEvent } from "./a2a-responses.ts";
import { controlPlaneClientOf, type DeploymentClients, deploymentClientsOf } from "./clients.ts";
import {
  type ControlPlaneClient,
  type Deployment,
  hasFailed,
  type SandboxTemplate,
} from "./control-plane.ts";
import { deadlineSignal } from "./poll.ts";
import { replyTo, STRATEGIES, type Strategy } from "./threads.ts";

interface SourceOption {
  readonly source?: string;
}

interface WaitOptions extends SourceOption {
  /** Limit in ms. */
  readonly within: number;
}

interface DeploymentOptions extends WaitOptions {
  readonly body?: string;
  readonly wait?: boolean;
}

interface AssistantOptions extends WaitOptions {
  readonly assistant: string;
  readonly thread?: string;
  readonly strategy?: Strategy;
  readonly context?: string;
  readonly task?: string;
}

export const examples = [
  ["platform deployment get 5c91043c-b824-44e0-cff1-b9acdbf3443f", "its state, and its newest revision"],
  ['platform run "Which day is it?"', "ask an assistant; this costs a trace"],
] as const;

const OPTIONS = {
  source: new Option(
    "--source <slug>",
    "use the hosts and the key of this source; needed if there are several",
  ),
  body: new Option("--body <file>", "JSON file with the request body; - reads stdin"),
  wait: new Option("--wait", "wait until the revision is deployed"),
  /** Cloud deployments take some minutes. */
  deployedWithin: withinOf(30 * 60_000),
  assistant: new Option("--assistant <name or id>", "graph of the deployment, or id of an assistant").default(
    "agent",
  ),
  /** Users rarely wait longer for an assistant. */
  repliedWithin: withinOf(10 * 60_000),
  thread: new Option("--thread <id>", "continue this thread instead of a new one"),
  strategy: new Option("--strategy <strategy>", "what happens to a run already active on the thread").choices(
    STRATEGIES,
  ),
  context: new Option("--context <id>", "continue the conversation of an earlier response"),
  task: new Option("--task <id>", "also name the task of an earlier response, for servers that require it"),
  contextOfTask: new Option("--context <id>", "conversation of the task; some servers require it"),
};
const BODY = ["source", "body", "wait", "deployedWithin"] as const;
const CONVERSATION = ["source", "assistant", "repliedWithin", "context", "task"] as const;

function withinOf(defaultMs: number): Option {
  const shown = Duration.fromMillis(defaultMs).rescale().toISO();
  return new Option("--within <duration>", "how long to wait")
    .argParser(parseDuration)
    .default(defaultMs, shown);
}

function withOptions(command: Command, about: string, ...names: (keyof typeof OPTIONS)[]): Command {
  command.description(about);
  for (const name of names) command.addOption(OPTIONS[name]);
  return command;
}

export function define(platform: Command): void {
  defineTemplate(platform);
  defineDeployment(platform);
  withOptions(
    platform.command("run <text>"),
    "run an assistant on a thread and show its reply; this costs a trace",
    "source",
    "assistant",
    "repliedWithin",
    "thread",
    "strategy",
  ).action(onDeployment(run));
  defineA2a(platform);
}

function defineTemplate(platform: Command): void {
  const template = platform.command("template").description("show and rename sandbox templates");
  withOptions(template.command("get <name>"), "show one template", "source").action(
    onControlPlane(async (client, session, _options, name) =>
      session.output.data(await client.template(name, session), describeTemplate),
    ),
  );
  withOptions(
    template.command("rename <name> <new-name>"),
    "rename a template; the platform allows no other change",
    "source",
  ).action(
    onControlPlane(async (client, session, _options, name, to) =>
      session.output.data(await client.renameTemplate({ name, to }, session), describeTemplate),
    ),
  );
}

function defineDeployment(platform: Command): void {
  const deployment = platform.command("deployment").description("manage deployments and their revisions");
  withOptions(
    deployment.command("create"),
    "create a deployment; the body goes to the platform unchanged",
    ...BODY,
  ).action(
    onControlPlane(async (client, session, options) =>
      finish(session, client, options, await client.createDeployment(bodyOf(options), session)),
    ),
  );
  withOptions(
    deployment.command("get <id>"),
    "show one deployment and the status of its latest revision",
    "source",
  ).action(
    onControlPlane(async (client, session, _options, deploymentId) => {
      const found = await client.deployment(deploymentId, session);
      const { latestRevisionId: revisionId } = found;
      const revision = revisionId && (await client.revision({ deploymentId, revisionId }, session));
      session.output.data({ ...found, status: revision ? revision.status : null }, describeDeployment);
    }),
  );
  withOptions(
    deployment.command("update <id>"),
    "update a deployment; a changed source creates a revision",
    ...BODY,
  ).action(
    onControlPlane(async (client, session, options, id) =>
      finish(session, client, options, await client.updateDeployment({ id, body: bodyOf(options) }, session)),
    ),
  );
  withOptions(
    deployment.command("wait <id>"),
    "wait until the latest revision is deployed; exit with 3 if it fails or takes too long",
    "source",
    "deployedWithin",
  ).action(
    onControlPlane(async (client, session, options, id) =>
      wait(session, client, options, await client.deployment(id, session)),
    ),
  );
}

function defineA2a(platform: Command): void {
  const a2a = platform.command("a2a").description("send agent-to-agent messages");
  withOptions(
    a2a.command("send <text>"),
    "send a message and show the reply; this costs a trace",
    ...CONVERSATION,
  ).action(
    onDeployment(async (clients, session, options, text) =>
      showTask(session, await clients.a2a.send(messageOf(options, text), waitingOf(session, options))),
    ),
  );
  withOptions(
    a2a.command("stream <text>"),
    "send a message and show each event as it arrives; this costs a trace",
    ...CONVERSATION,
  ).action(onDeployment(stream));
  withOptions(
    a2a.command("task <id>"),
    "show status and reply of a task",
    "source",
    "assistant",
    "contextOfTask",
  ).action(
    onDeployment(async (clients, session, options, taskId) => {
      const of = { assistantId: options.assistant, taskId, contextId: options.context };
      return showTask(session, await clients.a2a.task(of, session));
    }),
  );
  withOptions(a2a.command("card"), "show the agent card of an assistant", "source", "assistant").action(
    onDeployment(async (clients, session, options) =>
      session.output.data(await clients.a2a.card(options.assistant, session), describeCard),
    ),
  );
}

type Action<C, O> = (
  clients: C,
  session: Session,
  options: O,
  operand: string,
  next: string,
) => Promise<number | undefined>;

function onControlPlane(action: Action<ControlPlaneClient, DeploymentOptions>) {
  return withClients(controlPlaneClientOf, action);
}

function onDeployment(action: Action<DeploymentClients, AssistantOptions>) {
  return withClients(deploymentClientsOf, action);
}

function withClients<C extends { close(): Promise<void> }, O extends SourceOption>(
  open: (access: PlatformAccess) => C,
  action: Action<C, O>,
) {
  return inSession(async (session: Session, options: O, operand = "", next = "") => {
    const clients = open(accessOf(session, options));
    session.onClose(() => clients.close());
    return (await action(clients, session, options, operand, next)) ?? EXIT.done;
  });
}

function accessOf({ config }: Session, { source: slug }: SourceOption): PlatformAccess {
  const { sources, platform } = config;
  const found = slug === undefined ? sources : sources.filter((one) => one.slug === slug);
  if (found.length === 1) return found[0] as PlatformAccess;
  if (slug === undefined && sources.length === 0) return platform;
  const known = sources.map((one) => one.slug).join(", ");
  throw new UsageError({
    code: "source_unknown",
    message: slug === undefined ? "Several sources are configured." : `There is no source ${slug}.`,
    next: `Choose one with --source. Configured: ${known || "none"}.`,
  });
}

function describeTemplate(template: SandboxTemplate): string {
  return tableOf([template], {
    name: "name",
    image: "image",
    limits: ({ resources }) =>
      Object.entries(resources)
        .flatMap(([what, value]) => (value === null ? [] : [`${what} ${printableLine(value)}`]))
        .join(", "),
    volumes: ({ volumeMounts }) => volumeMounts.length,
    "proxy rules": ({ proxyConfig }) => (proxyConfig?.rules as unknown[] | undefined)?.length ?? 0,
    id: "id",
  });
}

async function finish(
  session: Session,
  client: ControlPlaneClient,
  options: DeploymentOptions,
  deployment: Deployment,
): Promise<number> {
  if (options.wait === true) return wait(session, client, options, deployment);
  session.output.data({ ...deployment, status: null }, describeDeployment);
  return EXIT.done;
}

/** A failed revision is shown and changes the exit code, but is no error. */
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
    if (revisionId === null) {
      throw new UsageError({
        code: "revision_missing",
        message: `Deployment ${deploymentId} has no revision.`,
        next: "Update the deployment with a source, then wait again.",
      });
    }
    const of = { deploymentId, revisionId };
    const revision = await client.waitForRevision(of, { withinMs, signal, onStatus });
    return hasFailed(revision) ? EXIT.partlyFailed : EXIT.done;
  } finally {
    // A created deployment has an id, however the wait ends.
    output.data({ ...deployment, status }, describeDeployment);
  }
}

/** Errors: `body_missing`, `body_invalid`. */
function bodyOf({ body: file }: DeploymentOptions): Record<string, unknown> {
  const next = "Give a file with one JSON object (--body deployment.json), or --body - for stdin.";
  if (file === undefined) throw new UsageError({ code: "body_missing", message: "--body is missing.", next });
  try {
    const text = textOf(readFileSync(file === "-" ? 0 : file));
    if (text === undefined) throw new Error(NO_TEXT);
    const body = parseJson(text);
    if (typeof body === "object" && body !== null && !Array.isArray(body)) return { ...body };
    throw new Error("it holds no object");
  } catch (error) {
    // A body may have secrets, and the parser's message would show them.
    const isOurs = error instanceof NestedTooDeepError || !(error instanceof SyntaxError);
    const reason = isOurs ? (error as Error).message : "it is not JSON";
    throw new UsageError({ code: "body_invalid", message: `--body ${file}: ${reason}.`, next });
  }
}

function describeDeployment(deployment: Deployment & { status: string | null }): string {
  return tableOf([deployment], {
    id: "id",
    name: "name",
    "latest revision": "latestRevisionId",
    status: "status",
  });
}

interface Shown {
  readonly runId: string;
  readonly threadId: string;
  readonly status: string;
  readonly reply: string | null;
}

async function run(
  { threads }: DeploymentClients,
  session: Session,
  options: AssistantOptions,
  text: string,
): Promise<number> {
  const { output } = session;
  const { within: withinMs, strategy } = options;
  const signal = deadlineSignal("The reply", { withinMs, signal: session.signal });
  const threadId = options.thread ?? (await threads.createThread({ signal })).threadId;
  const assistantId = options.assistant;
  const created = await threads.createRun({ threadId, assistantId, text, strategy }, { signal });
  output.note(`run ${created.runId} on thread ${threadId}`);
  let shown: Shown = { ...created, reply: null };
  try {
    const ended = await threads.join(created, { withinMs, signal });
    shown = { ...ended, reply: null };
    const hasSucceeded = ended.status === "success";
    if (hasSucceeded || ended.status === "unknown") {
      const { messages, questions } = await threads.state(threadId, { signal });
      const isWaiting = hasSucceeded && questions.length > 0;
      shown = isWaiting
        ? { ...ended, status: "input_required", reply: questions.join("\n") }
        : { ...ended, reply: replyTo(text, messages, { hasSucceeded }) };
      if (isWaiting) return EXIT.partlyFailed;
    }
    return hasSucceeded || shown.reply !== null ? EXIT.done : EXIT.partlyFailed;
  } finally {
    // The run costs a trace, so its ids are always shown.
    output.data(shown, describeRun);
  }
}

function describeRun({ runId, threadId, status, reply }: Shown): string {
  const run = `Run ${runId} on thread ${threadId}`;
  if (status === "input_required") {
    return `${run} has not finished. It waits for an answer to:\n${reply}\nAnswer it in the agent's own client.`;
  }
  if (reply !== null) return reply;
  if (status === "rolled_back")
    return `${run} was rolled back: a newer run, or somebody, deleted it while it was waited for.`;
  if (status === "pending" || status === "running") return `${run} has not ended, as far as is known.`;
  return `${run} ended without a reply: ${status}.`;
}

async function stream(
  { a2a }: DeploymentClients,
  session: Session,
  options: AssistantOptions,
  text: string,
): Promise<number> {
  const { output } = session;
  const events: TaskEvent[] = [];
  try {
    const waiting = waitingOf(session, options);
    for await (const event of a2a.stream(messageOf(options, text), waiting)) {
      output.note(`${event.state}${event.final ? ", final" : ""}`);
      events.push(event);
    }
  } finally {
    // If the stream was cut, the user finds the task by these ids.
    const last = events.at(-1);
    if (last !== undefined) output.data(events, () => describeTask(last));
  }
  return exitOfTask(events.at(-1)?.state);
}

function messageOf(options: AssistantOptions, text: string) {
  return {
    assistantId: options.assistant,
    text,
    contextId: options.context,
    taskId: options.task,
  };
}

function waitingOf({ output, signal }: Session, { within: withinMs }: AssistantOptions) {
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

/** `auth-required` counts as refused, and an unknown state as failed. */
function exitOfTask(state = "unknown"): number {
  if (state === "auth-required") return EXIT.refused;
  return GOING_WELL.includes(state) ? EXIT.done : EXIT.partlyFailed;
}

const NO_REPLY: Readonly<Record<string, string>> = {
  canceled: "The task was canceled.",
  "input-required": "The assistant asks a question, which the server does not return with this task.",
};
const ANSWER = "\nThe task waits for your answer. Send the answer with --context and --task of this task.\n";

function describeTask(task: Task): string {
  const ids = tableOf([task], { state: "state", context: "contextId", task: "taskId" });
  const reply = task.reply ?? NO_REPLY[task.state] ?? "(no reply)";
  const hint = task.state === "input-required" ? ANSWER : "";
  return `${reply}\n${hint}\n${ids}`;
}

function describeCard(card: AgentCard): string {
  return tableOf([card], {
    name: "name",
    description: "description",
    url: "url",
    skills: ({ skills }) => skills.join(", "),
    input: ({ inputModes }) => inputModes.join(", "),
    output: ({ outputModes }) => outputModes.join(", "),
    protocol: "protocol",
  });
}
