import { type Command, Option } from "commander";
import { STRATEGIES, type Strategy } from "../../../platform/agents/threads.ts";
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
