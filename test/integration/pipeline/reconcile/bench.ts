import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { type ReconcileRequest, reconcileScheduled } from "../../../../src/core/pipeline/proof/reconcile.ts";
import { startProxy } from "../../../support/proxy.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { differences, inLedger, inStore, unreconciledDays } from "../../../support/tables.ts";

export const PROJECTS: Partial<ReconcileRequest> = { groupings: ["project"] };
export const REPAIR: Partial<ReconcileRequest> = { ...PROJECTS, repair: true };

/** A bench with one workspace loaded, behind a proxy that may change the lines of its exports by project. */
export async function behindProxy(options: Parameters<typeof setup>[0] = {}) {
  const bench = await setup({ workspaces: [0], ...options });
  await bench.sync();
  let change: (cells: string[], row: number) => string[] | string[][] = (cells) => cells;
  const proxy = await startProxy(bench.standin.url, ({ url, text }) => {
    if (!url.pathname.endsWith("/export")) return undefined;
    const [head = "", ...rows] = text.trimEnd().split("\r\n");
    const changed = rows.flatMap((line, row) => {
      const cells = change(line.split(","), row);
      return (Array.isArray(cells[0]) ? (cells as string[][]) : [cells as string[]]).map((one) => one.join());
    });
    return `${[head, ...changed].join("\r\n")}\r\n`;
  });
  return {
    bench,
    proxy,
    change: (to: typeof change) => {
      change = to;
    },
    reconcile: (request: Partial<ReconcileRequest> = REPAIR, how: Parameters<Bench["reconcile"]>[1] = {}) =>
      bench.reconcile(request, { baseUrl: proxy.url, ...how }),
    /** Requests for JSON that were sent so far. */
    loads: async () =>
      Number(
        (await bench.sql<{ n: number }>("SELECT count(*) AS n FROM usage.fetch WHERE purpose = 'load'"))[0]
          ?.n,
      ),
    kept: () =>
      bench.sql<{ kind: string; state: string; stored: number; exported: number; says: string | null }>(
        `SELECT kind, state, stored_traces AS stored, other_traces AS exported, export_says AS says
         FROM usage.difference WHERE compared_with = 'export' ORDER BY period_start, external_id`,
      ),
  };
}

const TRACES = -1;
export const NAME = 5;
export const plus = (cells: string[], more: number) =>
  cells.with(TRACES, String(Number(cells.at(TRACES)) + more));

export const DAYS = 45;

export async function night(bench: Bench, days = DAYS, how: Parameters<Bench["open"]>[0] = {}) {
  const before = await sent(bench);
  const results = await reconcileScheduled(await bench.open(how), { days });
  const after = await sent(bench);
  return {
    results,
    sent: Object.fromEntries(
      Object.entries(after).flatMap(([key, n]) =>
        n > (before[key] ?? 0) ? [[key, n - (before[key] ?? 0)]] : [],
      ),
    ),
    left: results.reduce((sum, { open, platformDisagrees }) => sum + open + platformDisagrees, 0),
    mended: results.reduce((sum, { repaired }) => sum + (repaired?.mended ?? 0), 0),
    failed: results.reduce(
      (sum, { failures, unverified, moved }) => sum + failures.length + unverified + moved,
      0,
    ),
  };
}

async function sent({ sql }: Bench): Promise<Record<string, number>> {
  const rows = await sql<{ key: string; n: number }>(
    "SELECT purpose || ' ' || stride AS key, count(*) AS n FROM usage.fetch GROUP BY 1",
  );
  return Object.fromEntries(rows.map(({ key, n }) => [key, n]));
}

export const unreconciled = (bench: Bench) =>
  unreconciledDays(bench, { range: { start: bench.dataStart, end: bench.today + DAY_MS } });

export async function wrong(bench: Bench, stride: "day" | "hour", range: { start: number; end: number }) {
  const stored = await inStore(bench, [stride]);
  const within = new Map(
    [...stored].filter(([key]) => {
      const at = Date.parse(key.split(" ")[2] ?? "");
      return at >= range.start && at < range.end;
    }),
  );
  return differences(within, inLedger(bench.standin, { stride, range, workspaceIds: bench.workspaceIds }));
}

export async function aRecord({ sql, dataStart }: Bench) {
  const [record] = await sql<{ series_id: number; traces: number; external_id: string; scope_id: number }>(
    `SELECT r.series_id, r.traces, e.external_id, s.scope_id
     FROM usage.dated_record r JOIN usage.series s USING (series_id) JOIN usage.trace_scope c USING (scope_id)
     JOIN usage.entity e ON e.entity_id = s.entity_id
     WHERE c.group_by = 'project' AND c.stride = 'day' AND r.bucket_start = $1::date ORDER BY r.traces DESC LIMIT 1`,
    [new Date(dataStart).toISOString().slice(0, 10)],
  );
  if (record === undefined) throw new Error("no record");
  return record;
}

export const firstDay = (bench: Bench) => new Date(bench.dataStart).toISOString().slice(0, 10);
