import { startClockGuard } from "../../../jobs/pause-jobs.ts";
import { systemClock } from "../../core/base/clock.ts";
import { type Config, requireSources, secretFilesOf } from "../../core/base/config.ts";
import { EtlError } from "../../core/base/errors.ts";
import type { Logger, Warn } from "../../core/base/log.ts";
import type { RedisServer } from "../../core/base/redis-server.ts";
import type { Secret } from "../../core/base/secret.ts";
import { knownSyncBudget } from "../../core/pipeline/sync/sync-budget.ts";
import type { Store } from "../../core/store/db/database.ts";
import { type ProcessState, processState } from "../../web/health.ts";
import { createMetrics, type Metrics } from "../../web/metrics.ts";
import { startHttpServer } from "../../web/server.ts";
import { pageServices, pagesOf } from "./pages.ts";
import { openQueues, type ServiceQueues } from "./queues.ts";
import { type Shared, startSource } from "./start-source.ts";

export type Role = "all" | "scheduler" | "worker" | "http";

interface ServeOptions {
  readonly config: Config;
  readonly store: Store;
  readonly redis: RedisServer;
  readonly role: Role;
  /** Default: every role but `worker`, which may run where pages must not be reachable. */
  readonly servesPages?: boolean;
  readonly log: Logger;
  /** Awaited before any work. Health and metrics are served meanwhile, since the service may start before its servers. */
  readonly untilReady?: () => Promise<void>;
}

export interface Service {
  readonly url: string;
  close(): Promise<void>;
}

export async function serve(options: ServeOptions): Promise<Service> {
  const { config, store, role, log, untilReady = async () => {} } = options;
  const sources = requireSources(config);
  const state = processState(systemClock.now());
  const { defer, close, signal } = closingOf(store, state);
  try {
    const secretFiles = watchSecretFiles(secretFilesOf(config), log);
    defer(secretFiles.close);
    const warn: Warn = (about) => log.warn(about, "connection");
    const slugs = sources.map(({ slug }) => slug);
    const queues = await openQueues({ slugs, redis: options.redis, role, isTraced: config.telemetry, warn });
    defer(queues.close);
    const { url, metrics } = await startHttp(options, { queues, state, defer });
    await untilReady();

    const clockOff = await startClockGuard({ redisTime: queues.clock, clock: systemClock, log, signal });
    const shared = {
      config,
      store,
      queues,
      metrics,
      state,
      clockOff,
      onSecretChange: secretFiles.onChange,
      defer,
      log,
      warn,
      signal,
    };
    const schedules = role === "all" || role === "scheduler";
    const works = role === "all" || role === "worker";
    for (const source of sources) await startSource(source, shared, { schedules, works });
    // A process that pauses its jobs on purpose is alive.
    const noteClock = () => {
      state.takesJobs = works && !clockOff.isPaused();
      state.startedAt = systemClock.now();
      state.lastJobAt = undefined;
    };
    clockOff.onChange(noteClock);
    noteClock();
    return { url, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type Defer = Shared["defer"];

function closingOf(store: Store, state: ProcessState) {
  const closers: Parameters<Defer>[0][] = [];
  const abort = new AbortController();
  const close = async () => {
    state.draining = true;
    abort.abort(
      new EtlError({
        code: "draining",
        message: "The process ends.",
        next: "Another process takes its jobs.",
      }),
    );
    // A job may be waiting for a silent Postgres.
    store.hurry();
    for (let next = closers.pop(); next !== undefined; next = closers.pop()) {
      try {
        await next();
      } catch {
        // The other parts and the process must end even if one part fails to close.
      }
    }
  };
  const defer: Defer = (closer) => void closers.push(closer);
  return { defer, close, signal: abort.signal };
}

async function startHttp(
  { config, store, redis: server, role, servesPages = role !== "worker", log }: ServeOptions,
  { queues, state, defer }: { queues: ServiceQueues; state: ProcessState; defer: Defer },
): Promise<{ url: string; metrics: Metrics }> {
  const metrics = createMetrics(store.db, queues.count, () => syncNeeds(config, store));
  const redis = { server, queues };
  const pages = servesPages ? pageServices({ config, store, redis, log }) : undefined;
  if (pages !== undefined) defer(pages.close);
  const token = config.webToken?.reveal();
  const http = await startHttpServer({
    host: config.httpHost,
    port: config.httpPort,
    state,
    reader: store.db,
    redisTime: queues.time,
    metrics,
    clock: systemClock,
    trustedProxies: config.webTrustedProxies,
    ...(pages === undefined ? {} : { addPages: pagesOf(pages) }),
    board: token === undefined ? undefined : { token, queues: queues.all },
  });
  defer(http.close);
  return { url: http.url, metrics };
}

async function syncNeeds(config: Config, store: Store) {
  const needs = requireSources(config).map(async (source) => {
    const budget = await knownSyncBudget(store.db, { config: source, settings: config });
    return budget === undefined ? [] : [{ source: source.slug, ...budget }];
  });
  return (await Promise.all(needs)).flat();
}

const LOOK_EVERY_MS = 5_000;

interface SecretFiles {
  /** Calls `listener` after the secret has changed. `listener` must not throw. */
  onChange(secret: Secret, listener: () => void): void;
  close(): void;
}

/**
 * Reads the files of secrets every few seconds, to log changes and to call listeners. Code that uses a secret reads its
 * file itself.
 */
function watchSecretFiles(secrets: ReadonlyMap<string, Secret>, log: Logger): SecretFiles {
  const listeners = new Map<Secret, (() => void)[]>();
  const seen = new Map(
    [...secrets.values()].map((secret) => [secret, { value: secret.reveal(), problem: "" }]),
  );
  const look = () => {
    for (const [name, secret] of secrets) {
      const before = seen.get(secret);
      const now = { value: secret.reveal(), problem: secret.problem() ?? "" };
      seen.set(secret, now);
      if (now.problem !== "" && now.problem !== before?.problem) {
        const next = "The last value stays in use. Correct the file, which is read again every few seconds.";
        log.warn({ code: "secret_unreadable", secret: name, reason: now.problem }, next);
      }
      if (now.value === before?.value) continue;
      log.info({ secret: name }, "secret changed: the new one is used from now on");
      for (const listener of listeners.get(secret) ?? []) listener();
    }
  };
  const timer = setInterval(look, LOOK_EVERY_MS).unref();
  return {
    onChange: (secret, listener) => {
      listeners.set(secret, [...(listeners.get(secret) ?? []), listener]);
    },
    close: () => clearInterval(timer),
  };
}
