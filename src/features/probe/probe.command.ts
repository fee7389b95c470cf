import { type Command, Option } from "commander";
import { describeDuration } from "../../core/base/clock.ts";
import { UsageError } from "../../core/base/errors.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import { EXIT } from "../../terminal/exit.ts";
import { parseDuration, withSource } from "../../terminal/options.ts";
import { linesOf, tableOf } from "../../terminal/output.ts";
import { inSessionOfSource, type Session } from "../../terminal/session.ts";
import { reportPerSource } from "../../terminal/sources.ts";
import { deploymentClientsOf } from "../agents/clients.ts";
import {
  A2A_TRACES,
  describeRises,
  PROBE_TRACES,
  type ProbeRequest,
  type ProbeResult,
  probeMeter,
} from "./probe-meter.ts";

interface ProbeOptions extends Omit<ProbeRequest, "deployment" | "key"> {
  readonly yes?: boolean;
  readonly shortKey?: string;
}

export const examples = [
  ["probe --project agent-server", "shows what it would send"],
  ["probe --project agent-server --yes --within PT2H", "sends it, and waits longer for billing"],
] as const;

export function define(command: Command): void {
  const duration = (flags: string, about: string, text: string) =>
    new Option(flags, about).argParser(parseDuration).default(parseDuration(text), text);
  withSource(command)
    .option("--yes", "send the traces, which are billed")
    .requiredOption("--project <name or id>", "project that the deployment traces into, and nobody else")
    .option("--user <id>", "user that the traces must be billed to", "(none)")
    .option("--short-key <short key>", "key that they must be billed to; default: it ends like USAGE_API_KEY")
    .option("--assistant <name or id>", "graph of the deployment, or id of an assistant", "agent")
    .addOption(duration("--within <duration>", "how long to wait for billing", "PT1H"))
    .addOption(duration("--settle-for <duration>", "how long the figures must stay right", "PT1M"))
    .action(inSessionOfSource(probe));
}

async function probe(session: Session, options: ProbeOptions): Promise<number> {
  return reportPerSource(session, {
    work: (source) => probeSource(session, source, options),
    exitOf: ({ state }) => EXIT_OF[state],
    describe: (results) => Object.values(results).map(describeProbe).join("\n\n"),
  });
}

/** Traces of a live platform cost money. Error: `probe_unconfirmed`. */
async function probeSource(
  { output, onClose }: Session,
  source: OpenSource,
  options: ProbeOptions,
): Promise<ProbeResult> {
  const { deploymentUrl, apiKey } = source.config;
  const deployment = deploymentClientsOf(source.config);
  onClose(() => deployment.close());
  if (options.yes !== true) {
    throw new UsageError({
      code: "probe_unconfirmed",
      message: `The probe would send up to ${PROBE_TRACES} billed traces through ${deploymentUrl} into project ${options.project}.`,
      next: "Nothing was sent. Add --yes to send the traces.",
    });
  }
  // The platform shows the end of a key.
  const key = options.shortKey ?? `...${apiKey.reveal().slice(-4)}`;
  return output.progress({ label: "billed", unit: "traces" }, (update) => {
    const onTrace = (sent: number) => output.note(`Trace ${sent} is sent.`);
    const onNoA2a = (reason: string) =>
      output.note(`The probe sends ${PROBE_TRACES - A2A_TRACES} traces, none by A2A: ${reason}`);
    const onReading = (billed: number, expected: number, nextMs: number) => {
      update({ done: Math.min(billed, expected), total: expected });
      output.note(`${billed} of ${expected} traces billed; next reading in ${describeDuration(nextMs)}`);
    };
    return probeMeter(source, { ...options, deployment, key, onTrace, onNoA2a, onReading });
  });
}

const EXIT_OF = { matched: EXIT.done, differs: EXIT.mismatch, inconclusive: EXIT.partlyFailed };

function describeProbe({ state, expected, figures, delayMs, code, message }: ProbeResult): string {
  const delay = delayMs === null ? "" : `; all billed ${describeDuration(delayMs)} after the last one`;
  const { expectedId = null, rises = [] } = figures.find(({ groupBy }) => groupBy === "workspace") ?? {};
  // While the right workspace is unknown, all workspaces are compared.
  const elsewhere = expectedId === null ? [] : rises.filter(({ id }) => id !== expectedId);
  return linesOf(
    `Probe: ${state}, ${expected} traces sent${delay}`,
    message !== undefined && `${message} [${code}]`,
    tableOf(figures, {
      dimension: "groupBy",
      "expected id": ({ expectedId }) => expectedId ?? "",
      expected: () => expected,
      billed: "billed",
      difference: "difference",
    }),
    elsewhere.length > 0 &&
      `Not checked: whether other workspaces changed by traffic of their own only (${describeRises(elsewhere)}).`,
  );
}
