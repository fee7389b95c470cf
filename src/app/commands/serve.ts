import { once } from "node:events";
import { type Command, Option } from "commander";
import { checkRedis } from "../../../jobs/queues.ts";
import { systemClock } from "../../core/base/clock.ts";
import { requireDatabaseUrl, requireSources } from "../../core/base/config.ts";
import { EtlError, UnreachableError } from "../../core/base/errors.ts";
import { createLogger } from "../../core/base/log.ts";
import { checkReachable, openStore } from "../../core/store/db/database.ts";
import type { Output } from "../../terminal/output.ts";
import { requireRedis } from "../../terminal/queue.ts";
import { endInTime, inSession, requireSchema, type Session } from "../../terminal/session.ts";
import { type Role, serve } from "../service/serve.ts";

const LOOK_AGAIN_MS = 2_000;

export const examples = [
  ["serve", "everything in one process"],
  ["serve --role worker", "only work through jobs; start as many as you like"],
] as const;

export function define(command: Command): void {
  command
    .addOption(
      new Option("--role <role>", "what this process does")
        .choices(["all", "scheduler", "worker", "http"])
        .default("all"),
    )
    .action(inSession(run));
}

async function run(session: Session, options: { role: Role }): Promise<undefined> {
  const { config, signal, output, onClose } = session;
  const databaseUrl = requireDatabaseUrl(config);
  const redis = requireRedis(session, "run `usage-etl sync --inline` by cron instead, without pages");
  requireSources(config);
  const log = createLogger(config.logLevel, "stdout");
  const store = openStore({
    url: databaseUrl,
    maxConnections: config.maxConnections,
    onSilent: (connections) => log.warn({ code: "postgres_silent", connections }, "connection"),
  });
  onClose(() => store.close());
  const untilReady = async () => {
    // A password in a file may still change.
    const mayChange = databaseUrl.isFromFile() ? ["postgres_refused"] : [];
    await untilThere(output, signal, () => checkReachable(store), mayChange);
    await requireSchema(store);
    const warnings = await untilThere(output, signal, () => checkRedis(redis));
    for (const warning of warnings) log.warn({ code: "redis_settings", reason: warning }, "redis");
  };
  const service = await serve({ config, store, redis, role: options.role, log, untilReady }).catch(
    (error: unknown) => {
      endInTime(output);
      throw error;
    },
  );
  if (options.role !== "worker") {
    const { accessOf } = await import("../../web/access.ts");
    if (accessOf(config).kind !== "off") output.note(`Pages: ${service.url}/`);
  }
  output.note(`serving as ${options.role}, health and metrics on ${service.url}; SIGTERM or Ctrl-C ends it`);
  if (!signal.aborted) await once(signal, "abort");
  await service.close();
}

/** Waits for a server that does not respond yet, and prints the reason once a minute. `codes`: other errors to retry. */
async function untilThere<T>(
  output: Output,
  signal: AbortSignal,
  check: () => Promise<T>,
  codes: readonly string[] = [],
): Promise<T> {
  for (let attempt = 0; ; attempt++) {
    try {
      return await check();
    } catch (error) {
      if (!(error instanceof EtlError)) throw error;
      const { code, message, next } = error;
      if (!(error instanceof UnreachableError) && !codes.includes(code)) throw error;
      const step = code.endsWith("_unreachable") ? "" : ` ${next}`;
      if (attempt % 30 === 0) output.note(`${message}${step} Waiting for it. [${code}]`);
      await systemClock.wait(LOOK_AGAIN_MS, signal);
    }
  }
}
