import type { Command } from "commander";
import type { AgentCard, Task, TaskEvent } from "../../../platform/agents/a2a-answers.ts";
import { table } from "../../report/output.ts";
import { EXIT } from "../../session/exit.ts";
import {
  type AssistantOption,
  assistantOf,
  openDeployment,
  type WithinOption,
  withAssistant,
  withWithin,
} from "../../session/platform-access.ts";
import { inSession, type Session } from "../../session/session.ts";
import { REPLY_WITHIN_MS } from "./run.ts";

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
