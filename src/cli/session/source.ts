import PQueue from "p-queue";
import { systemClock } from "../../clock.ts";
import type { Config, SourceConfig } from "../../config/config.ts";
import { createLogger } from "../../log.ts";
import { asRun } from "../../pipeline/runs.ts";
import { enterSource, openSource } from "../../pipeline/source/open-source.ts";
import type { OpenSource, SourceDeps } from "../../pipeline/source/source.ts";
import { billingClientOf } from "../../platform/clients.ts";
import type { Store } from "../../store/db/database.ts";
import type { RunEnd, RunKind } from "../../store/work/runs.ts";
import { EXIT } from "./exit.ts";
import type { Session } from "./session.ts";

type Given = { config: Config; store: Store } & Pick<Session, "signal" | "onClose" | "output">;

/** Opens a source for a command. Apart from session.ts: most commands ask no platform, and start sooner without this. */
async function openSourceOf(source: SourceConfig, given: Given): Promise<OpenSource> {
  return openSource(sourceDepsOf(source, given));
}

/** What a command needs to ask a source's platform. Its client is closed with the session. */
export function sourceDepsOf(source: SourceConfig, given: Given): SourceDeps {
  const { config, store, signal, onClose, output } = given;
  const billing = billingClientOf(source);
  onClose(() => billing.close());
  return {
    store,
    billing,
    config: source,
    settings: config,
    log: createLogger(config.logLevel, output.logTo).child({ source: source.slug }),
    clock: systemClock,
    attempts: 8,
    admit: rateBudget(source.rateLimit),
    signal,
  };
}

/** Opens a source and does a command's work with it. With a kind, contact and work are one run of the history. */
export async function workOnSource(
  source: SourceConfig,
  given: Given & { kind: RunKind | undefined },
  work: (source: OpenSource) => Promise<number>,
): Promise<number> {
  if (given.kind === undefined) return work(await openSourceOf(source, given));
  const deps = sourceDepsOf(source, given);
  const entered = await enterSource(deps);
  const run = async (runId: number) => work({ ...(await openSource(deps, entered)), runId });
  return asRun(entered, given.kind, run, (exit) => ENDS.get(exit) ?? { outcome: "done" });
}

/** What the exit code says of a run. The tables say why. */
const ENDS: ReadonlyMap<number, RunEnd> = new Map<number, RunEnd>([
  [EXIT.partlyFailed, { outcome: "partly_failed" }],
  [EXIT.mismatch, { outcome: "differs" }],
  ...[EXIT.usage, EXIT.refused, EXIT.unreachable, EXIT.unexpected].map((exit): [number, RunEnd] => [
    exit,
    { outcome: "failed" },
  ]),
]);

/** Admits at most this many requests in any 10 s. */
function rateBudget(requestsPer10s: number): () => Promise<void> {
  const budget = new PQueue({ interval: 10_000, intervalCap: requestsPer10s, strict: true });
  return () => budget.add(() => {});
}
