import { createPrices } from "../support/charges.ts";
import { usageEtl } from "../support/cli.ts";
import { setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { temporaryFolder } from "../support/temporary.ts";

const [WORKSPACE] = WORKSPACES;
const BIG = Number.MAX_SAFE_INTEGER;
const PROJECT = "00000000-0000-4000-8000-00000000000a";
/** What a spreadsheet would run, and what a CSV has to quote. */
const HOSTILE = '=SUM(A1:A9)\n"quoted", 営業\u2028 ,';

export async function setup() {
  const bench = await setupSource();
  const load = (groupBy: "workspace" | "project", day: string, next: string, traces: number, name: string) =>
    loadRows(bench.store, {
      sourceId: bench.sourceId,
      workspaceId: WORKSPACE,
      groupBy,
      window: windowOf("day", day, next),
      rows: [[day, groupBy === "workspace" ? WORKSPACE : PROJECT, traces, name]],
    });
  await load("workspace", "2026-03-01", "2026-03-02", BIG, HOSTILE);
  await load("workspace", "2026-03-02", "2026-03-03", 7, HOSTILE);
  await load("project", "2026-03-01", "2026-03-02", 3, "-1+2");
  await createPrices(bench.store, [{ unitPrice: "0.0000000003" }]);
  const folder = temporaryFolder();
  const run = (...args: string[]) => usageEtl(["export", ...args], { DATABASE_URL: bench.url });
  return { ...bench, folder, run };
}
