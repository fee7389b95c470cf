import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { parse } from "csv-parse/sync";
import { expect, test } from "vitest";
import { type Bench, setup } from "../../support/source.ts";
import { temporaryFolder } from "../../support/temporary.ts";

/**
 * A client of the billing API that others wrote: langsmith_billing_report.py of simon-langchain/langsmith-billing-report
 * (Python 3.10, standard library alone). Neither it nor a like one is in a package registry, so a copy is named by
 * USAGE_PUBLIC_CLIENT. It reads the stand-in as it reads the platform, and must find the totals that we stored.
 */
const CLIENT = process.env.USAGE_PUBLIC_CLIENT;
const WITHOUT = "set USAGE_PUBLIC_CLIENT to a copy of langsmith_billing_report.py";

const day = (instant: number) => new Date(instant).toISOString().slice(0, 10);

async function report({ standin, dataStart, today }: Bench, ...level: string[]) {
  const folder = temporaryFolder();
  const output = join(folder, "report.csv");
  await promisify(execFile)("python3", [
    CLIENT ?? "",
    "--base-url",
    standin.url,
    "--api-key",
    standin.apiKey,
    "--output",
    output,
    "--start",
    day(dataStart),
    "--end",
    day(today),
    ...level,
  ]);
  return parse(await readFile(output, "utf8"), { columns: true }) as Record<string, string>[];
}

for (const contract of ["tiered", "day-granular"] as const) {
  test.skipIf(CLIENT === undefined)(
    `a public client finds the stored totals on a ${contract} server (${CLIENT ?? WITHOUT})`,
    async () => {
      const bench = await setup({ standin: { contract } });
      await bench.sync();
      const within = `usage_date >= '${day(bench.dataStart)}' AND usage_date < '${day(bench.today)}'`;
      const stored = await bench.sql<{ workspace: string; traces: number }>(
        `SELECT workspace_name AS workspace, sum(traces)::bigint AS traces
         FROM reporting.fct_usage_workspace_daily WHERE ${within} GROUP BY 1 HAVING sum(traces) > 0`,
      );
      const found = (await report(bench)).map(({ workspace, traces }) => `${workspace}: ${traces}`);
      expect(found.sort()).toEqual(stored.map((row) => `${row.workspace}: ${row.traces}`).sort());

      const projects = await bench.sql<{ workspace: string; project: string; each: string[] }>(
        `SELECT workspace, project, array_agg(traces::text) AS each FROM (
           SELECT w.workspace_name AS workspace, p.project_name AS project, sum(p.traces) AS traces
           FROM reporting.fct_usage_project_daily p JOIN reporting.dim_workspace w USING (source_id, workspace_id)
           WHERE ${within} GROUP BY w.workspace_name, p.project_name, p.project_id HAVING sum(p.traces) > 0
         ) AS one GROUP BY 1, 2`,
      );
      const rows = await report(bench, "--level", "project");
      expect(rows).toHaveLength(projects.length);
      for (const { workspace, project, each } of projects) {
        const row = rows.find((one) => one.workspace === workspace && one.project === project);
        expect(each, `${workspace}: ${project}`).toContain(row?.traces);
      }
      // What the billing provider holds, as the client reads it: it may know workspaces that the key does not read.
      const held = (await report(bench, "--mode", "overview"))
        .filter(({ metric, workspace }) => metric?.includes("Base") && !workspace?.startsWith("[unknown"))
        .map(({ workspace, value }) => `${workspace}: ${value}`);
      expect(held.sort()).toEqual(found);

      expect(bench.standin.requests.recent.filter(({ status }) => status !== 200)).toEqual([]);
    },
  );
}
