import { type Command, Option } from "commander";
import type { AgentCard, Task } from "../../platform/agents/a2a.ts";
import { STRATEGIES, type Strategy } from "../../platform/agents/threads.ts";
import { table } from "../report/output.ts";
import { EXIT } from "../session/exit.ts";
import { openDeployment, parseDuration, type SourceOption, withSource } from "../session/platform-access.ts";
import { inSession, type Session } from "../session/session.ts";

/** An assistant that takes longer than this is hardly waited for by a person. */
const WITHIN_MS = 10 * 60_000;

interface AssistantOptions extends SourceOption {
  readonly assistant?: string;
  readonly within: number;
}

interface RunOptions extends AssistantOptions {
  readonly thread?: string;
  readonly strategy?: Strategy;
}

interface A2aOptions extends AssistantOptions {
  readonly context?: string;
  readonly task?: string;
}

export function addRunCommands(platform: Command): void {
  const withAssistant = (command: Command): Command =>
    withSource(command).option("--assistant <name or id>", "which assistant; default USAGE_PROBE_ASSISTANT");
  const withWithin = (command: Command): Command =>
    withAssistant(command).option("--within <duration>", "how long to wait", parseDuration, WITHIN_MS);
  withWithin(platform.command("run <text>"))
    .description("run an assistant on a thread and show its reply; costs a trace")
    .option("--thread <id>", "go on in this thread; without it a new one is made")
    .addOption(
      new Option("--strategy <strategy>", "what becomes of a run that the thread has under way").choices(
        STRATEGIES,
      ),
    )
    .action(inSession(run));

  const a2a = platform.command("a2a").description("the agent-to-agent endpoint");
  const withConversation = (command: Command): Command =>
    withWithin(command)
      .option("--context <id>", "the conversation to go on in, from the answer before")
      .option("--task <id>", "the task of the answer before");
  withConversation(a2a.command("send <text>"))
    .description("send a message and show the reply; costs a trace")
    .action(
      inSession(async (session: Session, options: A2aOptions, text: string) => {
        const io = { signal: session.signal, withinMs: options.within };
        const task = await openDeployment(session, options).a2a.send(messageOf(session, options, text), io);
        return showTask(session, task);
      }),
    );
  withConversation(a2a.command("stream <text>"))
    .description("send a message and show what comes, as it comes; costs a trace")
    .action(inSession(stream));
  withAssistant(a2a.command("task <id>"))
    .description("status and reply of a task")
    .option("--context <id>", "its conversation; some servers need it")
    .action(
      inSession(async (session: Session, options: A2aOptions, taskId: string) => {
        const of = { assistantId: assistantOf(session, options), taskId, contextId: options.context };
        return showTask(session, await openDeployment(session, options).a2a.task(of, session));
      }),
    );
  withAssistant(a2a.command("card"))
    .description("the agent card of an assistant")
    .action(
      inSession(async (session: Session, options: A2aOptions) => {
        const card = await openDeployment(session, options).a2a.card(assistantOf(session, options), session);
        session.output.data(card, describeCard);
      }),
    );
}

async function run(session: Session, options: RunOptions, text: string): Promise<number> {
  const { threads } = openDeployment(session, options);
  const { output, signal } = session;
  const threadId = options.thread ?? (await threads.createThread({ signal })).threadId;
  const assistantId = assistantOf(session, options);
  const created = await threads.createRun(
    { threadId, assistantId, text, strategy: options.strategy },
    { signal },
  );
  output.note(`run ${created.runId} on thread ${threadId}`);
  const ended = await threads.join(created, { withinMs: options.within, signal });
  const { messages } = await threads.state(threadId, { signal });
  const last = messages.at(-1);
  const reply = ended.status === "success" && last?.type === "ai" ? last.content : null;
  output.data({ ...ended, reply }, () => reply ?? `The run ended without a reply: ${ended.status}.`);
  return ended.status === "success" ? EXIT.done : EXIT.partlyFailed;
}

async function stream(session: Session, options: A2aOptions, text: string): Promise<number> {
  const { a2a } = openDeployment(session, options);
  const events = [];
  for await (const event of a2a.stream(messageOf(session, options, text), session)) {
    session.output.note(`${event.state}${event.final ? ", final" : ""}`);
    events.push(event);
  }
  const last = events.at(-1);
  session.output.data(events, () => (last === undefined ? "No event came." : describeTask(last)));
  return last?.state === "completed" ? EXIT.done : EXIT.partlyFailed;
}

function messageOf(session: Session, options: A2aOptions, text: string) {
  return {
    assistantId: assistantOf(session, options),
    text,
    contextId: options.context,
    taskId: options.task,
  };
}

function assistantOf({ config }: Session, { assistant }: AssistantOptions): string {
  return assistant ?? config.probeAssistant;
}

function showTask({ output }: Session, task: Task): number {
  output.data(task, describeTask);
  return task.state === "failed" ? EXIT.partlyFailed : EXIT.done;
}

function describeTask({ taskId, contextId, state, reply }: Task): string {
  return `${reply ?? "(no reply)"}\n\n${table(["state", "context", "task"], [[state, contextId, taskId]])}`;
}

function describeCard({ name, description, url, skills, inputModes, outputModes }: AgentCard): string {
  return table(
    ["name", "description", "url", "skills", "takes", "gives"],
    [[name, description, url, skills.join(", "), inputModes.join(", "), outputModes.join(", ")]],
  );
}
