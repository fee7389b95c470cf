import { randomUUID } from "node:crypto";
import { parseArgs } from "node:util";
import pg from "pg";
import { pino } from "pino";
import { table } from "../../src/cli/report/output.ts";
import { systemClock } from "../../src/clock.ts";
import { Secret } from "../../src/config/secret.ts";
import { DAY_MS, floorToGrid } from "../../src/domain/time/stride.ts";
import { type Standin, startStandin } from "../../src/local/standin/server.ts";
import { runInline } from "../../src/pipeline/extract/run-inline.ts";
import { checkTotals } from "../../src/pipeline/proof/check-totals.ts";
import { openSource } from "../../src/pipeline/source/open-source.ts";
import { planSource } from "../../src/pipeline/sync/plan.ts";
import { billingClientOf } from "../../src/platform/clients.ts";
import { openStore } from "../../src/store/db/database.ts";
import { median, openDatabases } from "./harness.ts";

/**
 * `npm run bench:proof`: what it costs to answer as of an instant, beside the same figures as they are today, and what it
 * takes to prove a year of 20 workspaces by control totals.
 */

const { values } = parseArgs({ options: { rounds: { type: "string", default: "5" } } });
const rounds = Number(values.rounds);
const [WORKSPACES, PROJECTS, DAYS] = [20, 50, 365];

/** A year of days by project, final a month ago, then a share of them restated within the last hours. */
const fill = (share: number) => `
  INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest, created_at)
    VALUES ('default', 'http://bench', current_date - ${DAYS}, 24, 'digest', now() - interval '2 years');
  INSERT INTO usage.entity (source_id, dimension, external_id)
    SELECT 1, 'workspace', 'w' || n FROM generate_series(1, ${WORKSPACES}) n;
  INSERT INTO usage.workspace (entity_id) SELECT entity_id FROM usage.entity;
  INSERT INTO usage.scope (source_id, group_by, workspace_id, stride)
    SELECT 1, 'project', entity_id, s FROM usage.workspace CROSS JOIN unnest(ARRAY['day', 'hour']) s;
  INSERT INTO usage.entity (source_id, dimension, external_id)
    SELECT 1, 'project', 'p' || n FROM generate_series(1, ${WORKSPACES * PROJECTS}) n;
  INSERT INTO usage.series (scope_id, entity_id)
    SELECT s.scope_id, e.entity_id FROM usage.entity e
    JOIN usage.trace_scope s ON s.stride = 'day' AND s.workspace_id = 1 + (e.entity_id % ${WORKSPACES})
    WHERE e.dimension = 'project';
  INSERT INTO usage.dated_record
    SELECT series_id, current_date - d, 1 + (series_id * 31 + d * 17) % 500
    FROM usage.series CROSS JOIN generate_series(5, ${DAYS - 1}) d;
  INSERT INTO usage.coverage
    SELECT scope_id, (current_date - ${DAYS - 1})::timestamp AT TIME ZONE 'UTC', (current_date - 4)::timestamp AT TIME ZONE 'UTC', true, 1, now(),
      tstzmultirange(tstzrange((current_date - ${DAYS - 1})::timestamp AT TIME ZONE 'UTC', (current_date - 4)::timestamp AT TIME ZONE 'UTC'))
    FROM usage.trace_scope WHERE stride = 'day';
  INSERT INTO usage.became_final
    SELECT scope_id, (d::date)::timestamp AT TIME ZONE 'UTC', (d::date + 1)::timestamp AT TIME ZONE 'UTC', now() - interval '30 days'
    FROM usage.trace_scope CROSS JOIN generate_series(current_date - ${DAYS - 1}, current_date - 5, interval '1 day') d
    WHERE stride = 'day';
  INSERT INTO usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number, restated_at)
    SELECT series_id, bucket_start::timestamp AT TIME ZONE 'UTC', traces + 1, traces, 2, now() - interval '1 hour'
    FROM usage.dated_record WHERE (series_id * 7919 + (bucket_start - '2020-01-01'::date) * 104729) % 1000 < ${share * 1000}`;

const SUM = "SELECT count(*)::integer AS rows, sum(traces)::bigint AS traces";
const QUESTIONS = {
  "today, by the view": `${SUM} FROM reporting.fct_usage_project_daily WHERE is_final`,
  "today, from the table": `${SUM} FROM usage.dated_record`,
  "as of yesterday": `${SUM} FROM reporting_detail.usage_project_daily_as_of(now() - interval '1 day')`,
};

async function timed(client: pg.Client, text: string): Promise<number> {
  const times: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const start = performance.now();
    await client.query(text);
    // The first one warms.
    if (round > 0) times.push(performance.now() - start);
  }
  return median(times);
}

const databases = await openDatabases();
try {
  process.stdout.write(`${databases.version}, ${databases.settings}; medians of ${rounds}\n\n`);
  const lines: (string | number)[][] = [];
  for (const share of [0, 0.01, 0.1]) {
    const url = await databases.create(fill(share));
    await databases.settle(url);
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      const [{ n: restated }] = (await client.query("SELECT count(*)::integer AS n FROM usage.restatement"))
        .rows as [{ n: number }];
      const today = (await client.query(QUESTIONS["today, from the table"])).rows[0];
      const then = (await client.query(QUESTIONS["as of yesterday"])).rows[0];
      if (Number(then.traces) !== Number(today.traces) + restated || then.rows !== today.rows) {
        throw new Error(
          `as of: ${JSON.stringify(then)}, expected ${JSON.stringify(today)} and ${restated} more`,
        );
      }
      const times: number[] = [];
      for (const text of Object.values(QUESTIONS)) times.push(await timed(client, text));
      const [view, raw, asOf] = times as [number, number, number];
      lines.push([
        `${share * 100} %`,
        today.rows,
        restated,
        Math.round(raw),
        Math.round(view),
        Math.round(asOf),
        (asOf / raw).toFixed(2),
        (asOf / view).toFixed(2),
      ]);
    } finally {
      await client.end();
    }
    await databases.drop(url);
  }
  const head = ["restated", "days", "restatements", "table ms", "view ms", "as of ms", "x table", "x view"];
  process.stdout.write(`As of yesterday, a year by project, every row read\n${table(head, lines)}\n\n`);
  process.stdout.write(`${await checkYear(WORKSPACES)}\n`);
} finally {
  await databases.close();
}

/** A year of days of so many workspaces, loaded, proved, and proved again after one day of one project was restated. */
async function checkYear(workspaces: number): Promise<string> {
  const today = floorToGrid(Date.now(), DAY_MS);
  const dataStart = new Date(today - 365 * DAY_MS).toISOString().slice(0, 10);
  const standin = await startStandin({ dataStart });
  growTo(standin, workspaces);
  const databaseUrl = await databases.create();
  const store = openStore({ url: databaseUrl });
  const config = {
    slug: "default",
    baseUrl: standin.url,
    apiKey: new Secret(standin.apiKey),
    organizationId: undefined,
    workspaceIds: [],
    dataStart,
    rateLimit: 1_000_000,
  };
  const billing = billingClientOf(config);
  try {
    const source = await openSource({
      store,
      billing,
      config,
      settings: {
        settleAfterMs: 3 * DAY_MS,
        hourlyForMs: DAY_MS,
        syncEveryMs: 900_000,
        refreshAfterMs: 0,
        userEmail: "keep",
        meters: ["traces"],
      },
      log: pino({ level: "silent" }),
      clock: systemClock,
      attempts: 1,
      admit: async () => {},
    });
    const lines: (string | number)[][] = [];
    const measure = async (
      what: string,
      work: () => Promise<{ requests: number; proved: number; restated: number }>,
    ) => {
      const start = performance.now();
      const { requests, proved, restated } = await work();
      lines.push([what, requests, proved, restated, ((performance.now() - start) / 1000).toFixed(1)]);
    };
    await measure("load of the days", async () => {
      const range = { start: source.dataStart, end: today };
      const { counts } = await runInline(
        source,
        await planSource(source, { wanted: [{ stride: "day", range }], reprocess: "all" }),
      );
      return { requests: counts.reduce((sum, one) => sum + one.requests, 0), proved: 0, restated: 0 };
    });
    const check = async () => {
      const { requests, daysProved, restated, differences } = await checkTotals(source, "all");
      if (differences > 0) throw new Error(`${differences} differences on a clean platform`);
      return { requests, proved: daysProved, restated };
    };
    await measure("check of the year", check);
    const [stream] = standin.organisation.streams.filter((one) => one.weight > 0);
    if (stream !== undefined) standin.ledger.change({ ...stream, at: today - 100 * DAY_MS }, 5);
    await measure("check after one restatement", check);
    return `Control totals of a year, ${workspaces} workspaces, all groupings\n${table(
      ["what", "requests", "daily figures proved", "restated", "seconds"],
      lines,
    )}`;
  } finally {
    await billing.close();
    await store.close();
    await standin.close();
    await databases.drop(databaseUrl);
  }
}

/** Copies of the organisation's busiest workspace, until there are so many. */
function growTo({ organisation }: Standin, count: number): void {
  const { workspaces, projects, streams } = organisation;
  const model = workspaces.find((one) => streams.some((s) => s.project.workspace === one && s.weight > 0));
  const copied = streams.filter((stream) => stream.project.workspace === model);
  while (workspaces.length < count && model !== undefined) {
    const workspace = { ...model, id: randomUUID(), name: `copy ${workspaces.length}` };
    workspaces.push(workspace);
    const copies = new Map(
      copied.map(({ project }) => [project, { ...project, id: randomUUID(), workspace }]),
    );
    projects.push(...copies.values());
    for (const stream of copied) {
      streams.push({
        ...stream,
        index: streams.length,
        project: copies.get(stream.project) ?? stream.project,
      });
    }
  }
}
