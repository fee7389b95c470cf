import { Command } from "commander";
import { pino } from "pino";
import { Secret } from "../../src/core/base/secret.ts";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { workMessage } from "../../src/core/pipeline/extract/work-task.ts";
import { sharesOf } from "../../src/core/pipeline/source/limit-shares.ts";
import { openSource } from "../../src/core/pipeline/source/open-source.ts";
import type { OpenSource } from "../../src/core/pipeline/source/source.ts";
import { planSync } from "../../src/core/pipeline/sync/sync.ts";
import { createBillingClient } from "../../src/core/platform/billing/billing.ts";
import { PlatformHttp } from "../../src/core/platform/http/http.ts";
import { openStore } from "../../src/core/store/db/database.ts";
import { SESSION_SETTINGS } from "../../src/core/store/db/session.ts";
import { putOffTasks, takeTasksToQueue } from "../../src/core/store/work/tasks.ts";
import { createOutput, table } from "../../src/terminal/output.ts";
import { openDatabases, query, storedTraces, whole, wholes } from "./harness.ts";
import { QUARTER_MS, startPlatform } from "./platform.ts";

/**
 * `npm run bench:day`: a day of syncs of a large customer, in half an hour; Ctrl-C ends it sooner, and shows what it has. Planning, queue
 * order, loading and what is not asked for are the program's own, on a real Postgres whose `now()` is a simulated clock: each request moves
 * it by what the rate limit takes. To be fast, it runs some of the workspaces at the same part of the rate limit.
 */

interface Options {
  readonly workspaces: number;
  readonly of: number[];
  readonly rate: number;
  readonly active: number;
  readonly hours: number;
  readonly refresh: number;
  readonly seed: number;
}

const options = new Command("bench:day")
  .description("a day of syncs on a simulated clock")
  .option("--workspaces <n>", "workspaces that are run; a multiple of 50", whole, 100)
  .option("--of <n...>", "workspaces that they stand for, one run each", wholes, [])
  .option("--rate <n>", "requests per 10 s, of all that they stand for", whole, 200)
  .option("--active <share>", "of the workspaces that have new traces in a quarter of an hour", Number, 0.3)
  .option("--hours <n>", "hours that are simulated", whole, 24)
  .option("--refresh <minutes>", "USAGE_REFRESH_AFTER", whole, 60)
  .option("--seed <n>", "of what arrives", whole, 1)
  .parse()
  .opts<Options>();

const { workspaces, hours, refresh } = options;
let isStopped = false;
process.once("SIGINT", () => {
  isStopped = true;
});
const START = Date.parse("2026-03-10T00:00:00Z");
const HISTORY_DAYS = 5;
const SAMPLE_MS = 5 * 60_000;
/** So long syncs have run before anything is counted. */
const WARM_MS = 75 * 60_000;
const AT_ONCE = 8;
const MOST_QUEUED = 1000;

/**
 * How old each figure is that is not final: by workspace, and by the other dimensions in days and hours. An hour that is kept since its day
 * proves it is as old as that day.
 */
const AGES = `
  SELECT CASE c.group_by WHEN 'workspace' THEN 'workspace' ELSE c.stride END AS of,
    (extract(epoch FROM now() - greatest(v.fetched_at, d.fetched_at)) / 60)::integer AS age,
    sum(ceil(extract(epoch FROM least(v.period_end, now()) - v.period_start) / CASE c.stride WHEN 'day' THEN 86400 ELSE 3600 END)) AS seen
  FROM usage.coverage v JOIN usage.scope c USING (scope_id)
  LEFT JOIN LATERAL (
    SELECT min(o.fetched_at) AS fetched_at FROM usage.scope s JOIN usage.coverage o USING (scope_id)
    WHERE c.stride = 'hour' AND s.stride = 'day' AND s.group_by = c.group_by AND s.workspace_id = c.workspace_id AND s.kind = c.kind
      AND o.period_start < v.period_end AND o.period_end > v.period_start
  ) d ON true
  WHERE NOT v.final AND v.period_start < now() GROUP BY 1, 2`;

const output = createOutput({ json: false });
const databases = await openDatabases();
const lines: (string | number)[][] = [];
const wrong: string[] = [];
for (const of of options.of.length === 0 ? [7000] : options.of) lines.push(await day(of));
process.stdout.write(
  `Syncs every 15 minutes, ${options.active * 100} % of the workspaces active in each, ${options.rate} requests per 10 s, USAGE_REFRESH_AFTER ${refresh} min; ages in minutes, median and worst\n${table(
    "workspaces,hours,requests a sync,by workspace,days,hours,most,allowed,syncs late,put off,age by workspace,of days,of hours,s".split(
      ",",
    ),
    lines,
  )}\n\n${workspaces} workspaces were run, seed ${options.seed}. ${databases.machine}\n`,
);
await databases.close();
if (wrong.length > 0) throw new Error(wrong.join("; "));

type Ages = Map<number, number>;

async function day(stoodFor: number): Promise<(string | number)[]> {
  const startedAt = performance.now();
  const url = await databases.create();
  await simulateClock(url);
  const store = openStore({ url });
  const from = START - HISTORY_DAYS * DAY_MS;
  const platform = await startPlatform({ workspaces, active: options.active, from, seed: options.seed });
  const { fetch } = sharesOf(options.rate);
  const requestMs = (fetch.duration / fetch.max) * (stoodFor / workspaces);
  const sql = <T>(text: string, parameters: unknown[] = []): Promise<T[]> =>
    store.transaction(async ({ client }) => (await client.query(text, parameters)).rows as T[]);

  let now = START - WARM_MS;
  let [requests, isPaced] = [0, false];
  const setClock = async (at: number) => {
    now = at;
    await sql("UPDATE simulated.clock SET at = greatest(at, $1)", [new Date(now)]);
  };
  const source = await (async () => {
    platform.pass(now);
    await setClock(now);
    const billing = createBillingClient(new PlatformHttp({ baseUrl: platform.url, apiKey: "bench-key" }));
    return openSource({
      store,
      billing,
      config: {
        slug: "default",
        baseUrl: platform.url,
        apiKey: new Secret("bench-key"),
        organizationId: undefined,
        workspaceIds: [],
        dataStart: new Date(from).toISOString().slice(0, 10),
        rateLimit: options.rate,
      },
      settings: {
        settleAfterMs: 3 * DAY_MS,
        hourlyForMs: 31 * DAY_MS,
        syncEveryMs: QUARTER_MS,
        refreshAfterMs: refresh * 60_000,
        userEmail: "keep",
        meters: ["traces"],
      },
      log: pino({ level: "silent" }),
      clock: { now: () => now, wait: async () => {} },
      attempts: 1,
      admit: async () => {},
    });
  })();

  const ages: Record<"workspace" | "day" | "hour", Ages> = {
    workspace: new Map(),
    day: new Map(),
    hour: new Map(),
  };
  const spent: number[] = [];
  let [late, mostPutOff, nextSample] = [0, 0, START];
  const look = async () => {
    for (; nextSample <= now; nextSample += SAMPLE_MS) {
      for (const { of, age, seen } of await sql<{ of: keyof typeof ages; age: number; seen: number }>(AGES))
        ages[of].set(age, (ages[of].get(age) ?? 0) + Number(seen));
    }
  };
  await planSync(source);
  await workUntil(source, () => false);
  isPaced = true;
  for (let next = now; next < START + hours * HOUR_MS && !isStopped; next += QUARTER_MS) {
    const before = requests;
    if (now > next) late++;
    else {
      for (; now + SAMPLE_MS < next; ) {
        await setClock(now + SAMPLE_MS);
        await look();
      }
      await setClock(next);
    }
    platform.pass(now);
    await planSync(source);
    const [putOff] = await putOffTasks(store.db, source.settings);
    if (next === START) [late, mostPutOff] = [0, 0];
    mostPutOff = Math.max(mostPutOff, putOff?.tasks ?? 0);
    await workUntil(source, async () => {
      await look();
      return now >= next + QUARTER_MS;
    });
    if (next >= START) spent.push(requests - before);
    output.note(`${new Date(next).toISOString().slice(5, 16)} ${requests - before} requests`);
  }
  const [sent] = await sql<Record<"workspace" | "days" | "hours", number>>(
    `SELECT count(*) FILTER (WHERE group_by = 'workspace')::integer AS workspace,
            count(*) FILTER (WHERE group_by <> 'workspace' AND stride = 'day')::integer AS days,
            count(*) FILTER (WHERE group_by <> 'workspace' AND stride = 'hour')::integer AS hours
     FROM usage.fetch WHERE purpose = 'load' AND fetched_at >= $1`,
    [new Date(START)],
  );
  // What is stored is what the platform has, however little was asked for. Tasks that waited may have been worked before the responses by
  // workspace of the last sync: the next one asks for what they left.
  isPaced = false;
  for (let last = 0; last < 2; last++) {
    await planSync(source);
    await workUntil(source, () => false);
  }
  const stored = await storedTraces(url);
  if (stored.some((sum) => sum !== platform.total()))
    wrong.push(`${stored.join(", ")} are stored, not ${platform.total()}`);
  await platform.close();
  await store.close();
  await databases.drop(url);
  const scale = stoodFor / workspaces;
  const mean = spent.reduce((sum, one) => sum + one, 0) / spent.length;
  return [
    stoodFor,
    (spent.length * QUARTER_MS) / HOUR_MS,
    Math.round(mean * scale),
    ...[sent?.workspace, sent?.days, sent?.hours].map((n = 0) => Math.round((n * scale) / spent.length)),
    Math.round(Math.max(...spent) * scale),
    Math.round((fetch.max * QUARTER_MS) / fetch.duration),
    late,
    Math.round(mostPutOff * scale),
    ...[ages.workspace, ages.day, ages.hour].map((of) => `${middleOf(of)}, ${Math.max(...of.keys())}`),
    Math.round((performance.now() - startedAt) / 1000),
  ];

  async function workUntil(of: OpenSource, isOver: () => boolean | Promise<boolean>): Promise<void> {
    const most = isPaced ? Math.ceil((MOST_QUEUED * workspaces) / stoodFor) : MOST_QUEUED;
    for (;;) {
      const messages = await store.transaction(({ db }) =>
        takeTasksToQueue(db, { sourceId: of.sourceId, most }),
      );
      if (messages.length === 0) return;
      await Promise.all(Array.from({ length: AT_ONCE }, () => workNext(of, messages)));
      if (await isOver()) return;
    }
  }

  async function workNext(of: OpenSource, messages: { taskId: number; generation: number }[]): Promise<void> {
    for (let next = messages.shift(); next !== undefined; next = messages.shift()) {
      const result = await workMessage(of, { ...next, isLastAttempt: true });
      const sent = "requests" in result ? result.requests : 0;
      requests += sent;
      if (isPaced && sent > 0) await setClock(now + sent * requestMs);
    }
  }
}

/** From now on every statement of the program takes the time from a table. What a default or a trigger stamps by itself does too. */
async function simulateClock(url: string): Promise<void> {
  const name = new URL(url).pathname.slice(1);
  await query(
    url,
    `CREATE SCHEMA simulated;
     CREATE TABLE simulated.clock (at timestamptz NOT NULL);
     INSERT INTO simulated.clock VALUES ('-infinity');
     CREATE FUNCTION simulated.now() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM simulated.clock';
     CREATE FUNCTION simulated.clock_timestamp() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT at FROM simulated.clock';
     ALTER TABLE usage.fetch_task ALTER created_at SET DEFAULT simulated.now();
     ALTER TABLE usage.fetch ALTER fetched_at SET DEFAULT simulated.now();
     ALTER DATABASE ${name} SET search_path = simulated, pg_catalog, public`,
  );
  SESSION_SETTINGS.search_path = "simulated, pg_catalog, pg_temp";
}

function middleOf(ages: Ages): number {
  const all = [...ages.values()].reduce((sum, seen) => sum + seen, 0);
  let sum = 0;
  for (const [age, seen] of [...ages].sort(([a], [b]) => a - b)) {
    sum += seen;
    if (sum >= all / 2) return age;
  }
  return Number.NaN;
}
