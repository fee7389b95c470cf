import { readFileSync } from "node:fs";
import pg from "pg";
import { describe, expect, onTestFinished, test } from "vitest";
import { parse } from "yaml";
import { GROUPINGS } from "../../src/domain/usage/record.ts";
import { importPrices } from "../../src/pipeline/import-prices.ts";
import { createMetrics } from "../../src/service/http/metrics.ts";
import { scopesOf } from "../../src/store/catalog/scopes.ts";
import type { Store } from "../../src/store/db/database.ts";
import { failScopes } from "../../src/store/load/failures.ts";
import { beginFetch, drawStamp, finishFetch } from "../../src/store/load/fetch-ledger.ts";
import { concludeProbe, enterProbe, keepBaseline, startWaiting } from "../../src/store/report/probes.ts";
import { createBackfill } from "../../src/store/work/backfills.ts";
import { addSource } from "../support/reporting.ts";
import { loadRows, setupMigrated, windowOf } from "../support/store.ts";

const DEPLOY = new URL("../../docs/deploy/", import.meta.url);
const read = (path: string) => readFileSync(new URL(path, DEPLOY), "utf8");

interface Datasource {
  type: string;
  uid: string;
}
interface Panel {
  title: string;
  type: string;
  datasource?: Datasource;
  targets?: { datasource: Datasource; rawSql?: string; expr?: string; format?: string }[];
}
interface Dashboard {
  panels: Panel[];
  templating: { list: { name: string; query: string; datasource: Datasource }[] };
}

const dashboard = JSON.parse(read("monitoring/grafana/dashboards/usage.json")) as Dashboard;
const { groups } = parse(read("monitoring/rules.yml")) as {
  groups: { rules: { alert: string; expr: string; labels: object; annotations: Record<string, string> }[] }[];
};
const rules = groups.flatMap((group) => group.rules);
const targets = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map((target) => ({ title, ...target })),
);
const queries = [
  ...targets.flatMap(({ title, rawSql, format }) =>
    rawSql === undefined ? [] : [{ title, rawSql, format }],
  ),
  ...dashboard.templating.list.map(({ name, query }) => ({
    title: `variable ${name}`,
    rawSql: query,
    format: "variable",
  })),
];
const expressions = [
  ...targets.flatMap(({ title, expr }) => (expr === undefined ? [] : [{ title, expr }])),
  ...rules.map(({ alert, expr }) => ({ title: alert, expr })),
  { title: "KEDA", expr: /query: (.*)/.exec(read("kubernetes-keda.yaml"))?.[1] ?? "" },
];

const WORKSPACE = "00000000-0000-4000-8000-000000000001";
const FROM = "2026-03-01T06:30:00Z";
const TO = "2026-03-09T06:30:00Z";

const PRICE = {
  ...{ sku: "traces", unitPrice: "0.0005", currency: "USD", validFrom: "2026-01-01" },
  ...{ validTo: null, source: null, workspace: null },
};

/** What Grafana makes of a query before it sends it: macros of its Postgres data source, and the variables. */
function expand(text: string): string {
  const variables: Record<string, string> = { source: "'default','another'", workspace: `'${WORKSPACE}'` };
  const expanded = text
    .replaceAll(/\$__timeFilter\(([^()]+)\)/g, `$1 BETWEEN '${FROM}' AND '${TO}'`)
    .replaceAll("$__timeFrom()", `'${FROM}'`)
    .replaceAll("$__timeTo()", `'${TO}'`)
    .replaceAll(/\$\{(\w+):sqlstring\}/g, (whole, name: string) => variables[name] ?? whole);
  const unknown = /\$[\w{]+/.exec(expanded)?.[0];
  if (unknown !== undefined) throw new Error(`${unknown} is neither a known macro nor a variable`);
  return expanded;
}

async function filledStore(): Promise<{ store: Store; url: string }> {
  const { store, url } = await setupMigrated();
  const sourceId = await addSource(store, { slug: "default", workspaceIds: [WORKSPACE] });
  const window = windowOf("day", "2026-03-01", "2026-03-04");
  for (const groupBy of GROUPINGS) {
    const id = groupBy === "workspace" ? WORKSPACE : "00000000-0000-4000-8000-00000000000a";
    await loadRows(store, {
      sourceId,
      workspaceId: WORKSPACE,
      groupBy,
      window,
      rows: [["2026-03-02", id, 7, "a name"]],
    });
  }
  const { fetchNumber } = await beginFetch(store.db, {
    sourceId,
    purpose: "load",
    groupBy: "user",
    window,
    workspaces: 1,
  });
  await finishFetch(store.db, { fetchNumber }, { outcome: "loaded" });
  const probeId = (await enterProbe(store.db, {
    sourceId,
    project: "probe",
    sender: { user: "(none)", key: "...key" },
  })) as number;
  await keepBaseline(store.db, { probeId, baseline: new Map(), projectId: undefined });
  await startWaiting(store.db, { probeId, withinMs: 1000, settleForMs: 1000 });
  const counts = { billed: 6, othersAdded: 0, othersRemoved: 0, difference: 0 };
  const figure = { groupBy: "project", expectedId: "p", ...counts, rises: [] } as const;
  await concludeProbe(store, { probeId, state: "matched", figures: [figure], billedAt: Date.now() });
  const scopeIds = await scopesOf(store.db, {
    sourceId,
    groupBy: "user",
    stride: "day",
    workspaceIds: [WORKSPACE],
  });
  const failed = windowOf("day", "2026-03-05", "2026-03-06");
  const stamp = await drawStamp(store.db);
  await failScopes(store, {
    scopeIds,
    period: failed,
    stamp,
    state: "failed",
    code: "test",
    message: "test",
  });
  await createBackfill(store, {
    sourceId,
    range: failed,
    stride: "day",
    groupings: ["user"],
    workspaceIds: [WORKSPACE],
    reprocess: "all",
    slices: [
      {
        groupBy: "user",
        window: failed,
        members: [{ workspaceId: WORKSPACE, scopeId: scopeIds[0] as number }],
      },
    ],
  });
  return { store, url };
}

describe("the SQL of the dashboard", () => {
  test("runs as usage_reader and shows what is loaded", async () => {
    const { store, url } = await filledStore();
    await importPrices(store, { file: "prices", replace: false, lines: [{ where: "line 2", price: PRICE }] });
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    onTestFinished(() => client.end());
    // What no panel may be without: a difference that is open, and a restatement of the days shown.
    await client.query(`
      INSERT INTO usage.reconciliation_difference (scope_id, external_id, bucket_start, kind, fetch_number)
        SELECT scope_id, 'p1', '${FROM}', 'traces_differ', 1 FROM usage.scope LIMIT 1;
      INSERT INTO usage.restatement (series_id, bucket_start, old_traces, new_traces, fetch_number, restated_at)
        SELECT series_id, '2026-03-02Z', 6, 7, 1, '2026-03-05Z' FROM usage.series LIMIT 1`);
    await client.query("SET ROLE usage_reader");
    const rows = new Map<string, number>();
    for (const { title, rawSql, format } of queries) {
      const result = await client.query(expand(rawSql)).catch((error: Error) => {
        throw new Error(`${title}: ${error.message}`);
      });
      rows.set(title, result.rows.length);
      const names = result.fields.map(({ name }) => name);
      if (format === "time_series") expect(names.slice(0, 2), title).toEqual(["time", "metric"]);
      if (title === "variable workspace") expect(names).toEqual(["__value", "__text"]);
    }
    const empty = [...rows].filter(([, count]) => count === 0).map(([title]) => title);
    expect(empty).toEqual([]);
  });

  test("must not use an unknown macro or variable", () => {
    expect(() => expand("SELECT $__unknown(x)")).toThrow("$__unknown");
    // Without :sqlstring, Grafana puts a value in as it is.
    expect(() => expand("SELECT $source")).toThrow("$source");
  });

  test("shows usage by every dimension, costs, and whether both can be trusted", () => {
    const views = new Set(queries.flatMap(({ rawSql }) => rawSql.match(/(?<=reporting\.)\w+/g) ?? []));
    expect([...views].sort()).toEqual([
      ...["backfill_status", "data_freshness", "dim_workspace"],
      ...[
        "fct_usage_api_key_daily",
        "fct_usage_project_daily",
        "fct_usage_user_daily",
        "fct_usage_workspace_daily",
      ],
      ...["focus_cost_usage_estimated", "usage_coverage_daily", "usage_reconciliation", "usage_restatement"],
    ]);
  });

  test("reads only the schema reporting", () => {
    for (const { title, rawSql } of queries) {
      const tables = [...rawSql.matchAll(/\b(?:FROM|JOIN) ([\w.]+)/g)].map((found) => found[1]);
      expect(tables.length, title).toBeGreaterThan(0);
      expect(tables.filter((table) => !table?.startsWith("reporting."))).toEqual([]);
    }
  });
});

test("every panel has a provisioned data source", () => {
  const { datasources } = parse(read("monitoring/grafana/datasources/datasources.yml")) as {
    datasources: Datasource[];
  };
  const provisioned = datasources.map(({ type, uid }) => ({ type, uid }));
  const used = [
    ...dashboard.panels.flatMap(({ datasource }) => datasource ?? []),
    ...targets.map(({ datasource }) => datasource),
    ...dashboard.templating.list.map(({ datasource }) => datasource),
  ];
  for (const datasource of used) expect(provisioned).toContainEqual(datasource);
});

describe("metrics", () => {
  /** Labels of each metric that a process which has worked exposes; a histogram under its series' names. */
  async function exposed(): Promise<Map<string, Set<string>>> {
    const { store } = await filledStore();
    await store.transaction(({ client }) =>
      client.query(`
        WITH probe AS (
          INSERT INTO usage.probe (source_id, project, state, period_start, expected_traces, sent_at, billed_at, finished_at)
          SELECT source_id, 'meter', 'matched', now(), 5, now(), now(), now() FROM usage.source LIMIT 1
          RETURNING probe_id
        )
        INSERT INTO usage.probe_figure SELECT probe_id, 'workspace', 5, 0, 0, 0 FROM probe;
        INSERT INTO usage.control_difference
          (scope_id, kind, period_start, period_end, external_id, state, fetch_number)
        SELECT scope_id, 'stride_total', '2026-03-01Z', '2026-03-02Z', 'p', 'platform_disagrees', 1
        FROM usage.scope LIMIT 1`),
    );
    const metrics = createMetrics(
      store.db,
      async () => [],
      async () => [{ source: "default", needed: 1, allowed: 2 }],
    );
    metrics.jobDone({
      job: "feed",
      source: "default",
      seconds: 1,
      counts: { inserted: 1 },
    });
    metrics.requestSent({ source: "default", status: 200 });
    metrics.jobFailed({ job: "feed", source: "default", code: "timeout" });
    const labels = new Map<string, Set<string>>();
    for (const line of (await metrics.text()).split("\n")) {
      const [, declared] = /^# TYPE (\S+)/.exec(line) ?? [];
      const [, name = declared, pairs = ""] = /^([a-z]\w*)(?:\{(.*)\})? /.exec(line) ?? [];
      if (name === undefined) continue;
      const known = labels.get(name) ?? new Set();
      for (const [, label = ""] of pairs.matchAll(/(\w+)="/g)) known.add(label);
      labels.set(name, known);
    }
    return labels;
  }

  test("the service exposes every metric and label that the dashboard, the alerts and the autoscaler name", async () => {
    const labels = await exposed();
    // Prometheus's own, and what it makes of a metric's label `job`, since its own has that name.
    labels.set("up", new Set(["job"]));
    for (const { title, expr } of expressions) {
      const names = expr.match(/\busage_etl_\w+|\bup\b/g) ?? [];
      expect(names.length, title).toBeGreaterThan(0);
      for (const name of names) expect([...labels.keys()], title).toContain(name);
      const known = new Set(names.flatMap((name) => [...(labels.get(name) ?? [])]));
      const named = [
        ...[...expr.matchAll(/\{([^}]*)\}/g)].flatMap(
          ([, matchers = ""]) => matchers.match(/\w+(?==|!)/g) ?? [],
        ),
        ...[...expr.matchAll(/\bby \(([^)]*)\)/g)].flatMap(([, by = ""]) => by.split(/,\s*/)),
      ];
      for (const label of named) expect([...known], `${title}: ${expr}`).toContain(label);
    }
  });
});

test("every alert says what is wrong, and docs/operate.md says what to do", () => {
  const runbook = read("../operate.md");
  expect(runbook).toContain("## Alerts");
  for (const { alert, labels, annotations } of rules) {
    expect(labels).toHaveProperty("severity");
    expect(annotations.summary).not.toBe("");
    expect(annotations.runbook).toBe("docs/operate.md#alerts");
    expect(runbook).toMatch(new RegExp(`^\\| \`${alert}\` \\|`, "m"));
  }
});
