import PQueue from "p-queue";
import { systemClock } from "../../clock.ts";
import type { Config, SourceConfig } from "../../config/config.ts";
import { createLogger } from "../../log.ts";
import { openSource } from "../../pipeline/source/open-source.ts";
import type { OpenSource, SourceDeps } from "../../pipeline/source/source.ts";
import { billingClientOf } from "../../platform/clients.ts";
import type { Store } from "../../store/db/database.ts";
import type { Session } from "./session.ts";

type Given = { config: Config; store: Store } & Pick<Session, "signal" | "onClose">;

/** Opens a source for a command. Apart from session.ts: most commands ask no platform, and start sooner without this. */
export async function openSourceOf(source: SourceConfig, given: Given): Promise<OpenSource> {
  return openSource(sourceDepsOf(source, given));
}

/** What a command needs to ask a source's platform. Its client is closed with the session. */
export function sourceDepsOf(source: SourceConfig, given: Given): SourceDeps {
  const { config, store, signal, onClose } = given;
  const billing = billingClientOf(source);
  onClose(() => billing.close());
  return {
    store,
    billing,
    config: source,
    settings: config,
    log: createLogger(config.logLevel).child({ source: source.slug }),
    clock: systemClock,
    attempts: 8,
    admit: rateBudget(source.rateLimit),
    signal,
  };
}

/** Admits at most this many requests in any 10 s. */
function rateBudget(requestsPer10s: number): () => Promise<void> {
  const budget = new PQueue({ interval: 10_000, intervalCap: requestsPer10s, strict: true });
  return () => budget.add(() => {});
}
