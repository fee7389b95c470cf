import { Command } from "commander";
import PQueue from "p-queue";
import { createOutput } from "../../src/cli/report/output.ts";
import { sourceDepsOf } from "../../src/cli/session/sources.ts";
import { readConfig, requireSources, type SourceConfig } from "../../src/config/config.ts";
import { DAY_MS, HOUR_MS } from "../../src/domain/time/stride.ts";
import { startStandin } from "../../src/local/standin/server.ts";
import { asRun } from "../../src/pipeline/as-run.ts";
import { runInline } from "../../src/pipeline/extract/run-inline.ts";
import { workMessage } from "../../src/pipeline/extract/work-task.ts";
import { closeSources } from "../../src/pipeline/months/close.ts";
import { checkTotals } from "../../src/pipeline/proof/check-totals.ts";
import { reconcileScheduled } from "../../src/pipeline/proof/reconcile.ts";
import { enterSource, openSource } from "../../src/pipeline/source/open-source.ts";
import type { OpenSource } from "../../src/pipeline/source/source.ts";
import { enqueueTasks, type QueueMessage } from "../../src/pipeline/sync/enqueue.ts";
import { planSource } from "../../src/pipeline/sync/plan.ts";
import { planSync } from "../../src/pipeline/sync/sync.ts";
import { keepStatistics, pruneLedgers } from "../../src/pipeline/upkeep.ts";
import { openStore, type Store } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import type { RunKind } from "../../src/store/work/runs.ts";
import { query } from "./harness.ts";
import { describeSizes, type Sizes, sizesOf, startMovedPostgres, tablesOf } from "./month-postgres.ts";

/**
 * `npm run bench:month`: what a month of syncs leaves in Postgres, which has autovacuum and a clock that is moved. Each hour of the
 * month is a sync as the service makes it, each night its checks, a reconciliation with repair and `prune`. Between two syncs of an
 * hour, autovacuum looks 60 times; here it looks once a second, about once a sync, and works without pauses. So a table waits for
 * it longer than in an installation. A checkpoint before each sync makes the log hold whole pages as often as it does there.
 */

const options = new Command("bench:month")
  .option("--records <n>", "hourly records of the history, about", Number, 500_000)
  .option("--history <days>", "days of it", Number, 240)
  .option("--keep-hours <days>", "USAGE_HOURLY_KEEP, 32 or more; default: for ever", Number)
  .option("--days <n>", "days of syncs", Number, 30)
  .option("--syncs <n>", "syncs a day", Number, 24)
  .option("--changes <n>", "counts of the last two days that change before each sync", Number, 20)
  .option("--restated <n>", "final counts that change, once a week", Number, 50)
  .option("--rewrite", "after the history, rewrite what docs/operate.md names")
  .parse()
  .opts<{
    records: number;
    history: number;
    keepHours?: number;
    days: number;
    syncs: number;
    changes: number;
    restated: number;
    rewrite?: boolean;
  }>();

const START = Date.parse("2027-03-01T00:00Z");
const DATA_START = START - options.history * DAY_MS;
/** History is loaded so long before, so that the first nights may merge and remove as all others. */
const LOADED_DAYS_BEFORE = 8;
/** Hourly records of a day of these at scale 1, about. */
const RECORDS_A_DAY = 750;
const WORKSPACES = 2;
const NIGHT_AFTER_SYNC = 5;
/** As the service's workers on one host, by default. */
const CONCURRENCY = 4;
const RESTATED_EVERY_DAYS = 7;
const RESTATED_DAYS_AGO = 10;
const CLOSE_ON_DAY = 5;
/** docs/operate.md, After the first load. */
const AFTER_FIRST_LOAD = [
  "REINDEX INDEX CONCURRENTLY usage.hourly_record_pkey",
  "REINDEX INDEX CONCURRENTLY usage.dated_record_pkey",
  "VACUUM (FULL, ANALYZE) usage.coverage",
];
const SHOWN_DAYS = [1, 7, options.days];

/** In the stand-in's list of streams, which is gone through again and again. */
let place = 0;

const dayText = (at: number) => new Date(at).toISOString().slice(0, 10);
const say = (text: string) => process.stderr.write(`${text}\n`);

const postgres = await startMovedPostgres(START - LOADED_DAYS_BEFORE * DAY_MS, {
  autovacuum_naptime: "1s",
  autovacuum_vacuum_cost_delay: "0",
  fsync: "off",
  synchronous_commit: "off",
  max_wal_size: "8GB",
});
const standin = await startStandin({
  dataStart: dayText(DATA_START),
  scale: Math.max(0.2, options.records / options.history / RECORDS_A_DAY),
});
const url = Object.assign(new URL(postgres.url), { pathname: "/usage" }).href;
/** As many as they are, each answer is of one: two of them keep a sync short. */
const workspaces = standin.organisation.workspaces.slice(0, WORKSPACES);
try {
  process.stdout.write(`${await measure()}\n`);
} finally {
  await standin.close();
  await postgres.close();
}

async function measure(): Promise<string> {
  await query(postgres.url, "CREATE DATABASE usage");
  await moveTo(START - LOADED_DAYS_BEFORE * DAY_MS);
  await withSource(async (run, store) => {
    await run("backfill", loadHistory);
    await moveTo(START);
    await run("reconcile", (source) => prune(source, store));
  });
  if (options.rewrite) for (const statement of AFTER_FIRST_LOAD) await query(url, statement);
  await query(url, "VACUUM (ANALYZE)");
  const start = { sizes: await sizesOf(url), packed: await packedSizes(), tables: await tablesOf(url) };
  const logBefore = await logOf();
  say(`history loaded, as of ${dayText(postgres.now())}`);
  const shown = new Map<number, Sizes>();
  await withSource(async (run, store) => {
    for (let day = 1; day <= options.days; day++) {
      const log = await logOf();
      await passDay(day, run, store);
      if (SHOWN_DAYS.includes(day)) shown.set(day, await sizesOf(url));
      say(`day ${day}: ${Math.round(((await logOf()) - log) / 1e6)} MB of log`);
    }
  });
  const perSync = ((await logOf()) - logBefore) / (options.days * options.syncs) / 1e6;
  const end = { tables: await tablesOf(url), sizes: await sizesOf(url), packed: await packedSizes() };
  const age = Math.max(...[...end.tables.values()].map((one) => one.age));
  const [server] = await query(
    url,
    "SELECT version() AS version, (SELECT count(*) FROM usage.hourly_record) AS hours, current_setting('shared_buffers') AS buffers",
  );
  return [
    describeSizes({ start, shown, end }),
    `${server?.hours} hourly records. ${options.days} days of ${options.syncs} syncs, ${options.changes} changed counts before each: ${perSync.toFixed(2)} MB of log a sync, nights included.`,
    `The oldest row that is not frozen is ${age} transactions old. ${await checkSums()}`,
    `${/^\S+ \S+/.exec(server?.version ?? "")?.[0]}, shared_buffers ${server?.buffers}, Node ${process.version}.`,
  ].join("\n");
}

/** Sizes of a copy that was written anew. */
async function packedSizes(): Promise<Sizes> {
  await query(postgres.url, "CREATE DATABASE anew TEMPLATE usage STRATEGY file_copy");
  const copy = Object.assign(new URL(url), { pathname: "/anew" }).href;
  await query(copy, "VACUUM (FULL)");
  const sizes = await sizesOf(copy);
  await query(postgres.url, "DROP DATABASE anew WITH (FORCE)");
  return sizes;
}

async function logOf(): Promise<number> {
  const [row] = await query(url, "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS bytes");
  return Number(row?.bytes);
}

/** Throws unless the days and hours of each dimension add up to what the platform has. */
async function checkSums(): Promise<string> {
  const rows = await query(
    url,
    `SELECT 'day' AS stride, group_by, sum(traces) AS traces, DATE '${dayText(DATA_START)}'::text AS "from"
     FROM usage.dated_record JOIN usage.series USING (series_id) JOIN usage.trace_scope USING (scope_id) WHERE stride = 'day' GROUP BY 2
     UNION ALL
     SELECT 'hour', group_by, sum(traces), (min(bucket_start) AT TIME ZONE 'UTC')::date::text
     FROM usage.hourly_record JOIN usage.series USING (series_id) JOIN usage.trace_scope USING (scope_id) GROUP BY 2`,
  );
  const { ledger, organisation } = standin;
  const read = organisation.streams.filter(({ project }) => workspaces.includes(project.workspace));
  for (const { stride, group_by, traces, from } of rows) {
    const edges = [Date.parse(`${from}T00:00Z`), standin.now()];
    const counted = read.reduce((sum, stream) => sum + (ledger.counts(stream, edges)[0] ?? 0), 0);
    if (counted === Number(traces)) continue;
    throw new Error(
      `${group_by} by ${stride} from ${from}: stored ${traces} traces, and the platform has ${counted}.`,
    );
  }
  return `${rows.length} sums are those of the platform.`;
}

async function loadHistory(source: OpenSource): Promise<number> {
  const range = { start: DATA_START, end: START - LOADED_DAYS_BEFORE * DAY_MS };
  for (const stride of ["day", "hour"] as const) {
    const tasks = await planSource(source, { wanted: [{ stride, range }], reprocess: "missing" });
    const { failures } = await runInline(source, tasks);
    if (failures[0] !== undefined) throw new Error(failures[0].message);
  }
  return 0;
}

/** The syncs of a day, and its night: what the schedule of the service does. */
async function passDay(day: number, run: Run, store: Store): Promise<void> {
  for (let i = 0; i < options.syncs; i++) {
    const now = START + (day - 1) * DAY_MS + Math.round((i * DAY_MS) / options.syncs) + HOUR_MS / 12;
    await moveTo(now);
    changeCounts(now, day);
    await query(url, "CHECKPOINT");
    await run("sync", sync);
    if (i !== Math.min(NIGHT_AFTER_SYNC, options.syncs - 1)) continue;
    await run("totals", (source) => checkTotals(source, "month"));
    await run("reconcile", (source) => reconcileScheduled(source, { days: 45 }));
    await run("reconcile", (source) => prune(source, store));
    if (day === CLOSE_ON_DAY) await closeLastMonth(store, now);
  }
}

function prune({ sourceId }: OpenSource, store: Store) {
  const keepHours = options.keepHours && options.keepHours * 24;
  return pruneLedgers(store, { sourceId, keepDays: 400, keepHours, userEmail: "keep" });
}

/** A sync, and the work of all its messages. */
async function sync(source: OpenSource): Promise<number> {
  const { store, sourceId } = source;
  await planSync(source);
  const workers = new PQueue({ concurrency: CONCURRENCY });
  const failed: string[] = [];
  const work = async ({ taskId, generation }: QueueMessage) => {
    const result = await workMessage(source, { taskId, generation, isLastAttempt: false });
    if (!["loaded", "gone", "loaded_already"].includes(result.outcome)) failed.push(result.outcome);
  };
  const queue = {
    add: async (messages: readonly QueueMessage[]) => {
      for (const message of messages)
        workers.add(() => work(message)).catch((error) => failed.push(error.message));
    },
    present: async () => new Set<string>(),
    remove: async () => 0,
  };
  while ((await enqueueTasks(store, { sourceId, queue })).fed > 0) await workers.onIdle();
  await keepStatistics(store);
  if (failed.length > 0) throw new Error(`${failed.length} fetch tasks did not load: ${failed[0]}`);
  return 0;
}

/** Late usage of the last two days; once a week, counts that are final change too. */
function changeCounts(now: number, day: number): void {
  const { streams } = standin.organisation;
  const change = (at: number, delta: number) => {
    const { project, user, key } = streams[place++ % streams.length] as (typeof streams)[number];
    standin.ledger.change({ project, user, key, at }, delta);
  };
  for (let i = 0; i < options.changes; i++) change(now - (place % 48) * HOUR_MS, 1);
  if (day % RESTATED_EVERY_DAYS !== 1 || now % DAY_MS > HOUR_MS) return;
  for (let i = 0; i < options.restated; i++) change(now - RESTATED_DAYS_AGO * DAY_MS, i % 5 === 0 ? -1 : 3);
}

async function closeLastMonth(store: Store, now: number): Promise<void> {
  const month = dayText(now - CLOSE_ON_DAY * DAY_MS).slice(0, 7);
  const by = { name: null, role: "operator", via: "command" } as const;
  const { closed } = await closeSources(store, {
    month,
    slugs: [],
    settleAfterMs: 3 * DAY_MS,
    withoutCosts: true,
    by,
  });
  say(`${month}: ${closed[0]?.result.state}`);
}

/** Both clocks; the platform's stands still until the next sync, so that its figures can be compared. */
async function moveTo(now: number): Promise<void> {
  postgres.move(now);
  standin.setClock({ frozenAt: now });
}

/** Does work as runs of the history, each after first contact. */
type Run = (kind: RunKind, work: (source: OpenSource) => Promise<unknown>) => Promise<void>;

/** Opens what a process of the service would have, and closes it. */
async function withSource(work: (run: Run, store: Store) => Promise<void>): Promise<void> {
  const store = openStore({ url });
  const closers = [() => store.close()];
  const config = readConfig({
    DATABASE_URL: url,
    USAGE_BASE_URL: standin.url,
    USAGE_API_KEY: standin.apiKey,
    USAGE_DATA_START: dayText(DATA_START),
    USAGE_WORKSPACE_IDS: workspaces.map(({ id }) => id).join(),
    USAGE_RATE_LIMIT: "1000000",
    USAGE_LOG_LEVEL: "error",
  });
  const [source] = requireSources(config);
  try {
    await migrate(store);
    const deps = sourceDepsOf(source as SourceConfig, {
      config,
      store,
      signal: new AbortController().signal,
      output: createOutput({ json: true }),
      onClose: (close) => void closers.push(close),
    });
    const entered = await enterSource(deps);
    const run: Run = (kind, task) =>
      asRun(
        entered,
        kind,
        async (runId) => void (await task({ ...(await openSource(deps, entered)), runId })),
        () => ({ outcome: "done" }),
      );
    await work(run, store);
  } finally {
    for (const close of closers.reverse()) await close();
  }
}
