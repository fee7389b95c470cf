import { pino } from "pino";
import type { EmailPolicy, SourceConfig } from "../../src/core/base/config.ts";
import { Secret } from "../../src/core/base/secret.ts";
import type { UsageRequest } from "../../src/core/domain/planning/request.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { type RunResult, runInline } from "../../src/core/pipeline/extract/run-inline.ts";
import {
  type ReconcileRequest,
  type ReconcileResult,
  reconcile,
} from "../../src/core/pipeline/proof/reconcile.ts";
import { learnMeters } from "../../src/core/pipeline/source/learn-meters.ts";
import { openSource } from "../../src/core/pipeline/source/open-source.ts";
import type { OpenSource } from "../../src/core/pipeline/source/source.ts";
import { type PlanRequest, planSource, routineDemand } from "../../src/core/pipeline/sync/plan.ts";
import { planRoutine } from "../../src/core/pipeline/sync/sync.ts";
import { createBillingClient } from "../../src/core/platform/billing/billing.ts";
import { PlatformHttp } from "../../src/core/platform/http/http.ts";
import type { Store } from "../../src/core/store/db/database.ts";
import { storeNow } from "../../src/core/store/work/fetch-ledger.ts";
import { type Standin, type StandinOptions, startStandin } from "../../src/features/standin/server.ts";
import { now as currentTime } from "./clock.ts";
import { poll } from "./poll.ts";
import { atEnd } from "./share.ts";
import { setupMigrated } from "./store.ts";

export interface Bench {
  readonly databaseUrl: string;
  readonly store: Store;
  readonly standin: Standin;
  readonly now: number;
  readonly today: number;
  readonly dataStart: number;
  readonly workspaceIds: readonly string[];
  readonly waits: number[];
  readonly logs: Record<string, unknown>[];
  open(how?: OpenOptions): Promise<OpenSource>;
  sync(how?: OpenOptions): Promise<Sync>;
  fetch(request: PlanRequest, how?: OpenOptions): Promise<Sync>;
  reconcile(request?: Partial<ReconcileRequest>, how?: OpenOptions): Promise<ReconcileResult>;
  passTime(): Promise<void>;
  sql<T>(text: string, parameters?: unknown[]): Promise<T[]>;
}

interface Sync {
  readonly source: OpenSource;
  readonly run: RunResult;
  readonly planned: number;
  readonly requests: number;
}

interface OpenOptions {
  readonly config?: Partial<SourceConfig>;
  readonly settings?: Partial<OpenSource["settings"]>;
  /** Default: the stand-in; a proxy's address in its place. */
  readonly baseUrl?: string;
  readonly store?: Store;
  readonly signal?: AbortSignal;
  readonly leavesOutUnshown?: boolean;
  readonly opened?: (source: OpenSource) => void;
}

interface BenchOptions {
  readonly standin?: Omit<StandinOptions, "now">;
  /** Of another bench, so that both platforms say the same. */
  readonly now?: number;
  /** Whole UTC days with usage before today. Default 6: three of them are final. */
  readonly days?: number;
  /** Indices of the stand-in's workspaces to be configured with; default: none, so they are listed. */
  readonly workspaces?: readonly number[];
  readonly settleAfterMs?: number;
  readonly hourlyForMs?: number;
  readonly userEmail?: EmailPolicy;
}

const FINAL_DAYS_AGO = 3;

/**
 * The stand-in's clock stands still, so that its responses can be compared with its ledger; Postgres's runs on. Everything
 * is closed when the test ends, and a connection left open fails it.
 */
export async function setup(options: BenchOptions = {}): Promise<Bench> {
  const started = options.now ?? (await farFromTheNextHour());
  const { store, url } = await setupMigrated();
  const bench = await openBench({ ...options, now: started, store, url });
  atEnd(bench.close);
  return bench;
}

export async function openBench(
  options: BenchOptions & { readonly now: number; readonly store: Store; readonly url: string },
): Promise<Bench & { close(): Promise<void> }> {
  const { now, store, url } = options;
  const today = floorToGrid(now, DAY_MS);
  const dataStart = today - (options.days ?? 6) * DAY_MS;
  const closers: (() => Promise<void>)[] = [];
  const standin = await startStandin({
    dataStart: new Date(dataStart).toISOString().slice(0, 10),
    now: () => now,
    ...options.standin,
  });
  closers.push(() => standin.close());
  const midnights = Array.from(
    { length: (today - dataStart) / DAY_MS + 1 },
    (_, i) => dataStart + i * DAY_MS,
  );
  haveTracesAtTheEnds(standin, midnights, now);
  const workspaceIds = (options.workspaces ?? []).map(
    (index) => standin.organisation.workspaces[index]?.id ?? "",
  );
  const waits: number[] = [];
  const logs: Record<string, unknown>[] = [];
  const log = pino({ level: "debug", base: null }, { write: (line) => void logs.push(JSON.parse(line)) });

  const open: Bench["open"] = async (how = {}) => {
    const config: SourceConfig = {
      slug: "default",
      baseUrl: how.baseUrl ?? standin.url,
      apiKey: new Secret(standin.apiKey),
      organizationId: undefined,
      workspaceIds,
      dataStart: new Date(dataStart).toISOString().slice(0, 10),
      rateLimit: 1000,
      ...how.config,
    };
    const billing = createBillingClient(
      new PlatformHttp({ baseUrl: config.baseUrl, apiKey: config.apiKey.reveal() }),
    );
    closers.push(() => billing.close());
    const source = await openSource({
      store: how.store ?? store,
      billing,
      config,
      settings: {
        settleAfterMs: options.settleAfterMs ?? FINAL_DAYS_AGO * DAY_MS,
        hourlyForMs: options.hourlyForMs ?? DAY_MS,
        syncEveryMs: 900_000,
        refreshAfterMs: 0,
        userEmail: options.userEmail ?? "keep",
        meters: ["traces"],
        ...how.settings,
      },
      log,
      clock: {
        now: currentTime,
        wait: async (ms, signal) => {
          signal?.throwIfAborted();
          waits.push(ms);
        },
      },
      attempts: 8,
      admit: async () => {},
      ...(how.signal === undefined ? {} : { signal: how.signal }),
      leavesOutUnshown: how.leavesOutUnshown ?? false,
    });
    how.opened?.(source);
    return source;
  };
  const run = async (
    source: OpenSource,
    tasks: readonly UsageRequest[],
    isRoutine = false,
  ): Promise<Sync> => {
    const before = standin.requests.count;
    const result = await runInline(source, tasks, { isRoutine });
    return { source, run: result, planned: tasks.length, requests: standin.requests.count - before };
  };
  const sql = async <T>(text: string, parameters: unknown[] = []): Promise<T[]> =>
    store.transaction(async ({ client }) => (await client.query(text, parameters)).rows as T[]);
  return {
    databaseUrl: url,
    store,
    standin,
    now,
    today,
    dataStart,
    workspaceIds,
    waits,
    logs,
    open,
    async sync(how) {
      const source = await open(how);
      await learnMeters(source);
      const wanted = routineDemand(source, await storeNow(source.store.db));
      return run(source, await planRoutine(source, { wanted }), true);
    },
    async fetch(request, how) {
      const source = await open(how);
      return run(source, await planSource(source, request));
    },
    async reconcile(request, how) {
      const source = await open(how);
      const range = { start: source.dataStart, end: await storeNow(source.store.db) };
      return reconcile(source, { range, stride: "day", repair: false, ...request });
    },
    async passTime() {
      await sql("UPDATE usage.failure SET retry_at = now() - interval '1 s'");
      await sql(
        "UPDATE usage.source_fact SET probe_after = now() - interval '1 s' WHERE probe_after IS NOT NULL",
      );
      await sql("UPDATE usage.source_meter SET request_again_at = now()");
      await sql("UPDATE usage.route_state SET next_try_at = NULL");
    },
    sql,
    close: async () => {
      for (const close of closers.reverse()) await close();
    },
  };
}

/**
 * Windows of hours begin at a midnight or end with the present hour, and the one that is left over may be as short as an hour. By night
 * it may have no traces, and then takes fewer requests: what a test counts would depend on when it runs.
 */
function haveTracesAtTheEnds({ organisation, ledger }: Standin, midnights: readonly number[], now: number) {
  for (const workspace of organisation.workspaces) {
    const stream = organisation.streams.find(
      ({ project, user, key, weight }) =>
        project.workspace === workspace && user !== null && key !== null && weight > 0,
    );
    if (stream === undefined) continue;
    for (const at of [...midnights, now]) if (at >= ledger.start) ledger.change({ ...stream, at }, 1);
  }
}

export function senderOn(standin: Standin, workspace: number, day: number) {
  const { organisation, ledger } = standin;
  const edges = Array.from({ length: 25 }, (_, hour) => day + hour * HOUR_MS);
  const busiest = organisation.streams
    .filter(
      ({ project, user, key }) =>
        project.workspace === organisation.workspaces[workspace] && user !== null && key !== null,
    )
    .flatMap(({ project, user, key, ...stream }) =>
      [...ledger.counts({ project, user, key, ...stream }, edges)].map((traces, hour) => ({
        project,
        user,
        key,
        at: day + hour * HOUR_MS,
        traces,
      })),
    )
    .reduce((most, one) => (one.traces > most.traces ? one : most));
  if (busiest.traces < 2) throw new Error(`no traffic on ${new Date(day).toISOString()}`);
  return busiest;
}

export function workspaceAt({ organisation }: Standin, index: number) {
  const workspace = organisation.workspaces[index];
  if (workspace === undefined) throw new Error(`no workspace ${index}`);
  return workspace;
}

export function setReadable(standin: Standin, index: number, readable: boolean): void {
  standin.access.setReadable(workspaceAt(standin, index), readable);
}

/** A new project of a workspace with so many traces at an instant, and with no other usage. */
export function beginProject(
  standin: Standin,
  { workspace: index, at, traces }: { workspace: number; at: number; traces: number },
) {
  const { organisation, ledger } = standin;
  const workspace = workspaceAt(standin, index);
  const project = { id: "99999999-9999-4999-8999-999999999999", name: "new", dropped: false, workspace };
  organisation.projects.push(project);
  ledger.change({ project, user: null, key: null, at }, traces);
  return project;
}

export async function farFromTheNextHour(marginMs = 10_000): Promise<number> {
  return poll(() => (currentTime() % HOUR_MS < HOUR_MS - marginMs ? currentTime() : 0), {
    deadlineMs: marginMs + 5_000,
    everyMs: 100,
  });
}
