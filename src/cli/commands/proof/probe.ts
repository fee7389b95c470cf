import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { UsageError } from "../../../errors.ts";
import {
  PROBE_TRACES,
  type ProbeRequest,
  type ProbeResult,
  probeMeter,
} from "../../../pipeline/proof/probe.ts";
import type { OpenSource } from "../../../pipeline/source/source.ts";
import { deploymentClientsOf } from "../../../platform/clients.ts";
import { linesOf, type Output, tableOf } from "../../report/output.ts";
import { EXIT, exitCodeOf, firstExit } from "../../session/exit.ts";
import { parseDuration } from "../../session/options.ts";
import { inSession, type Session } from "../../session/session.ts";
import { reportPerSource } from "../../session/sources.ts";

interface ProbeOptions {
  readonly yes?: boolean;
  readonly project?: string;
  readonly assistant?: string;
  readonly within?: number;
}

export const examples = [
  ["probe --project agent-server", "asks before it sends anything"],
  ["probe --yes --within PT2H", "without a question, and with a longer wait"],
] as const;

export function define(command: Command): void {
  command
    .option("--yes", "do not ask first")
    .option("--project <name or id>", "project that the deployment traces into; default USAGE_PROBE_PROJECT")
    .option("--assistant <name or id>", "the assistant; default USAGE_PROBE_ASSISTANT")
    .option("--within <duration>", "how long to wait for billing; default USAGE_PROBE_WITHIN", parseDuration)
    .action(inSession(run));
}

async function run(session: Session, options: ProbeOptions): Promise<number> {
  return reportPerSource(session, {
    kind: "probe",
    work: async (source) => {
      const request = requestOf(session, source, options);
      if (options.yes !== true) await askFirst(session, source, request);
      return showProbe(session.output, source, {
        ...request,
        assistantId: options.assistant ?? session.config.probeAssistant,
        ...session.config.probeTimes,
        ...(options.within === undefined ? {} : { withinMs: options.within }),
      });
    },
    exitOf: exitOfProbe,
    describe: (results) => Object.values(results).map(describeProbe).join("\n\n"),
    // The cause is an Error; its message is part of the result.
    toData: ({ cause: _, ...result }) => ({ ...result, notChecked: changedElsewhere(result.figures) }),
  });
}

function requestOf(session: Session, source: OpenSource, options: ProbeOptions) {
  const { config } = source;
  const project = options.project ?? config.probeProject;
  if (project === undefined) {
    throw new UsageError({
      code: "probe_project_missing",
      message: "USAGE_PROBE_PROJECT is not set.",
      next: "Set it to the name or id of the project that the deployment traces into (by default named like the deployment).",
    });
  }
  const deployment = deploymentClientsOf(config);
  session.onClose(() => deployment.close());
  return { deployment, project };
}

/** On a live platform the traces cost money, so nothing is sent without consent. Error: `probe_unconfirmed`. */
async function askFirst(
  { signal }: Session,
  source: OpenSource,
  { project }: Pick<ProbeRequest, "project">,
): Promise<void> {
  const where = source.config.deploymentUrl ?? "";
  const refuse = (message: string) =>
    new UsageError({
      code: "probe_unconfirmed",
      message,
      next: "Add --yes to send without asking. Nothing was sent.",
    });
  if (!process.stdin.isTTY)
    throw refuse("The probe sends billed traces, and there is no terminal to ask on.");
  const asked = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const question = `Send about ${PROBE_TRACES} traces through ${where} into project ${project}? They are billed. [y/N] `;
    const answer = await asked.question(question, { signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw refuse("The probe was not confirmed.");
  } finally {
    asked.close();
  }
}

function showProbe(output: Output, source: OpenSource, request: ProbeRequest): Promise<ProbeResult> {
  let shown = -1;
  return output.progress({ label: "billed", unit: "traces" }, (update) =>
    probeMeter(source, request, ({ billed, expected, waitedMs, withinMs, settlesInMs }) => {
      update({ done: Math.min(billed, expected), total: expected });
      if (billed === shown) return;
      shown = billed;
      const left = `${seconds(Math.max(0, withinMs - waitedMs))} left`;
      const next = settlesInMs === undefined ? left : `looking again in ${seconds(settlesInMs)}`;
      output.note(`${billed} of ${expected} traces billed after ${seconds(waitedMs)}; ${next}`);
    }),
  );
}

const seconds = (ms: number) => `${(ms / 1000).toFixed(1)} s`;

export function exitOfProbe({ state, cause }: ProbeResult): number {
  if (state === "matched") return EXIT.done;
  if (state === "differs" || state === "late") return EXIT.mismatch;
  return cause === undefined ? EXIT.partlyFailed : firstExit([exitCodeOf(cause), EXIT.partlyFailed]);
}

export function describeProbe(result: ProbeResult): string {
  const { probeId, state, expected, figures, code, message } = result;
  const elsewhere = changedElsewhere(figures)
    .map(({ id, traces }) => `${id} ${traces > 0 ? "+" : ""}${traces}`)
    .join(", ");
  return linesOf(
    `Probe ${probeId}: ${state}, ${expected} traces sent${describeDelay(result)}`,
    message !== undefined && `${message} [${code}]`,
    figures.length > 0 &&
      tableOf(figures, {
        dimension: "groupBy",
        "expected id": ({ expectedId }) => expectedId ?? "",
        expected: () => expected,
        billed: "billed",
        "at most by others": "othersAdded",
        difference: "difference",
      }),
    elsewhere !== "" &&
      `Not checked: whether other workspaces changed by traffic of their own only (${elsewhere}).`,
  );
}

function describeDelay({ firstDelayMs, delayMs, lateAfterMs }: ProbeResult): string {
  const limit = lateAfterMs === null ? "" : ` (limit ${seconds(lateAfterMs)})`;
  const first = firstDelayMs === null ? "" : `first billed ${seconds(firstDelayMs)}`;
  if (delayMs !== null) return `; ${first} and all billed ${seconds(delayMs)} after the last one${limit}`;
  return first === "" ? "; none billed" : `; ${first} after the last one, never all of them`;
}

/** Other workspaces that changed. Their own projects account for it: a rise that they do not is a difference. */
function changedElsewhere(figures: ProbeResult["figures"]) {
  const { expectedId = null, rises = [] } = figures.find(({ groupBy }) => groupBy === "workspace") ?? {};
  return expectedId === null ? [] : rises.filter(({ id }) => id !== expectedId);
}
