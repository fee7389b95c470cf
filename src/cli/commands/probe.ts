import { createInterface } from "node:readline/promises";
import type { Command } from "commander";
import { UsageError } from "../../errors.ts";
import { PROBE_TRACES, type ProbeRequest, type ProbeResult, probeMeter } from "../../pipeline/probe/probe.ts";
import type { OpenSource } from "../../pipeline/source/source.ts";
import { deploymentClientsOf } from "../../platform/clients.ts";
import { type Output, table } from "../report/output.ts";
import { EXIT, exitCodeOf, firstExit } from "../session/exit.ts";
import { parseDuration } from "../session/platform-access.ts";
import { inSession, type Session } from "../session/session.ts";

interface ProbeOptions {
  readonly yes?: boolean;
  readonly project?: string;
  readonly assistant?: string;
  readonly within?: number;
}

export function addProbeCommand(program: Command): void {
  program
    .command("probe")
    .description(
      "send a little known traffic and check that exactly that is billed; it costs what traces cost",
    )
    .option("--yes", "do not ask first")
    .option(
      "--project <name or id>",
      "the project that the deployment traces into; default USAGE_PROBE_PROJECT",
    )
    .option("--assistant <name or id>", "which assistant; default USAGE_PROBE_ASSISTANT")
    .option("--within <duration>", "how long to wait for billing; default USAGE_PROBE_WITHIN", parseDuration)
    .action(inSession(run));
}

async function run(session: Session, options: ProbeOptions): Promise<number> {
  const { config, output } = session;
  const results: Record<string, ProbeResult> = {};
  const exit = await session.eachSource(async (source) => {
    const request = requestOf(session, source, options);
    if (options.yes !== true) await askFirst(session, source, request);
    const result = await showProbe(output, source, {
      ...request,
      assistantId: options.assistant ?? config.probeAssistant,
      withinMs: options.within ?? config.probeWithinMs,
    });
    results[source.config.slug] = result;
    return exitOfProbe(result);
  });
  output.data(toData(results), () => Object.values(results).map(describeProbe).join("\n\n"));
  return exit;
}

function requestOf(session: Session, source: OpenSource, options: ProbeOptions) {
  const { config } = source;
  const project = options.project ?? config.probeProject;
  if (project === undefined) {
    throw new UsageError({
      code: "probe_project_missing",
      message: "USAGE_PROBE_PROJECT is not set.",
      next: "Set it to the name or id of the project that the deployment traces into (its own name, unless it was changed).",
    });
  }
  const deployment = deploymentClientsOf(config);
  session.onClose(() => deployment.close());
  return { deployment, project };
}

/** On a live platform the traffic costs money: nothing is sent that nobody agreed to. */
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
      next: "Add --yes where nobody can be asked; nothing was sent.",
    });
  if (!process.stdin.isTTY)
    throw refuse("The probe sends traffic that is billed, and nobody is there to agree.");
  const asked = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const question = `Send about ${PROBE_TRACES} traces through ${where} into project ${project}? They are billed. [y/N] `;
    const answer = await asked.question(question, { signal });
    if (!/^y(es)?$/i.test(answer.trim())) throw refuse("The probe was not agreed to.");
  } finally {
    asked.close();
  }
}

/** Runs one probe, showing how much of it is billed. */
async function showProbe(output: Output, source: OpenSource, request: ProbeRequest): Promise<ProbeResult> {
  const progress = output.progress("billed");
  let told = -1;
  return probeMeter(source, request, ({ billed, expected, waitedMs, withinMs }) => {
    progress.update({ done: Math.min(billed, expected), total: expected });
    if (billed === told) return;
    told = billed;
    const left = Math.max(0, Math.round((withinMs - waitedMs) / 1000));
    output.note(
      `${billed} of ${expected} traces billed after ${(waitedMs / 1000).toFixed(1)} s; ${left} s left`,
    );
  }).finally(progress.stop);
}

export function exitOfProbe({ state, cause }: ProbeResult): number {
  if (state === "matched") return EXIT.done;
  if (state === "differs") return EXIT.mismatch;
  return cause === undefined ? EXIT.partlyFailed : firstExit([exitCodeOf(cause), EXIT.partlyFailed]);
}

/** Without the cause, whose message stands beside it. */
function toData(results: Readonly<Record<string, ProbeResult>>) {
  return Object.fromEntries(
    Object.entries(results).map(([slug, { cause: _cause, ...result }]) => [slug, result]),
  );
}

export function describeProbe(result: ProbeResult): string {
  const { probeId, state, expected, figures, delayMs, code, message } = result;
  const delay =
    delayMs === null ? "" : `, billed ${(delayMs / 1000).toFixed(1)} s after the last trace was sent`;
  const lines = [`Probe ${probeId}: ${state}, ${expected} traces sent${delay}`];
  if (message !== undefined) lines.push(`${message} [${code}]`);
  if (figures.length === 0) return lines.join("\n");
  const rows = figures.map((one) => [one.groupBy, expected, one.billed, one.othersAdded, one.difference]);
  return [...lines, table(["group_by", "expected", "rose by", "at most others'", "difference"], rows)].join(
    "\n",
  );
}
