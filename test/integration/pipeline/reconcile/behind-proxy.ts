import type { ReconcileRequest } from "../../../../src/pipeline/proof/reconcile.ts";
import { startProxy } from "../../../support/proxy.ts";
import { type Bench, setup } from "../../../support/source.ts";

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
        `SELECT kind, state, stored_traces AS stored, export_traces AS exported, export_says AS says
         FROM usage.reconciliation_difference ORDER BY bucket_start, external_id`,
      ),
  };
}

/** The last column: a name with a comma in it makes more cells than columns. */
export const TRACES = -1;
export const NAME = 5;
export const plus = (cells: string[], more: number) =>
  cells.with(TRACES, String(Number(cells.at(TRACES)) + more));
