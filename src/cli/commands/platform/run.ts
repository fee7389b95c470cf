import { type Command, Option } from "commander";
import { replyTo, STRATEGIES, type Strategy } from "../../../platform/agents/threads.ts";
import { deadlineSignal } from "../../../platform/http/poll.ts";
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
