import { execFile } from "node:child_process";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { replaceOwners } from "../../src/features/owners/owners.store.ts";
import { COST, close, fill, loadDay, setup } from "../reporting/focus/bench.ts";
import { usageEtl } from "../support/cli.ts";
import { WORKSPACES } from "../support/reporting.ts";
import { loadRows, windowOf } from "../support/store.ts";
import { temporaryFolder } from "../support/temporary.ts";
import { notInstalled, venvOf } from "./counterparts.ts";

const VERSION = "1.2.0.1";

const KNOWN: Readonly<Record<string, readonly string[]>> = {
  "Columns that 1.3 renamed and removed: ProviderName, PublisherName": [
    "BilledCost-C-000-M",
    "BilledCost-C-005-C",
    "CostAndUsage-D-000-M",
    "CostAndUsage-D-001-M",
    "CostAndUsage-D-002-M",
    "CostAndUsage-D-021-M",
    "CostAndUsage-D-038-M",
    "ProviderName-C-000-M",
    "ProviderName-C-001-M",
    "ProviderName-C-002-M",
    "ProviderName-C-003-M",
    "PublisherName-C-000-M",
    "PublisherName-C-001-M",
    "PublisherName-C-002-M",
    "PublisherName-C-003-M",
  ],
  "Faults of the packaged rules: a status is required without a reservation or commitment, and an invoice without one":
    [
      "CapacityReservationStatus-C-000-C",
      "CapacityReservationStatus-C-002-C",
      "CapacityReservationStatus-C-004-C",
      "CommitmentDiscountStatus-C-000-C",
      "CommitmentDiscountStatus-C-002-C",
      "CommitmentDiscountStatus-C-004-C",
      "InvoiceId-C-005-C",
    ],
};

test.for([COST.table, `${COST.table}_by_resource`])(
  "the validator of FOCUS finds in %s, closed and corrected, what is known and no more",
  async (table, { skip }) => {
    const absent = notInstalled("focus");
    if (absent !== undefined) return skip(absent);
    const bench = await setup();
    await fill(bench);
    await close(bench, 0);
    await loadDay(bench, "2026-03-01", WORKSPACES[0], 3, "=before");
    await loadRows(bench.store, {
      sourceId: bench.sourceId,
      workspaceId: WORKSPACES[0],
      groupBy: "project",
      window: windowOf("day", "2026-04-30", "2026-05-01"),
      rows: [["2026-04-30", "p", 3, "Search"]],
    });
    const shares = ["a", "b"].map((owner) => ({ owner, costCenter: null, share: 5000 }));
    await bench.store.transaction(({ db }) =>
      replaceOwners(db, {
        content: "",
        divideBy: "project",
        budgets: [],
        routes: [],
        rules: [
          {
            source: null,
            workspace: null,
            of: { dimension: "project", id: "p" },
            name: null,
            line: 1,
            tag: null,
            from: null,
            to: null,
            shares,
          },
        ],
      }),
    );
    const folder = temporaryFolder();
    const out = join(folder, "charges.csv");
    const said = await usageEtl(["export", "--view", table.replace(/.*\./, ""), "--out", out], {
      DATABASE_URL: bench.url,
    });
    expect(said.code, said.stderr).toBe(0);
    expect(readFileSync(out, "utf8")).toContain(",Correction,");

    expect((await brokenRules(out, folder)).sort()).toEqual(Object.values(KNOWN).flat().sort());
  },
);

async function brokenRules(file: string, folder: string): Promise<string[]> {
  const report = join(folder, "report.xml");
  const venv = venvOf("focus");
  const options = [
    "--validate-version",
    VERSION,
    "--focus-dataset",
    "CostAndUsage",
    "--applicability-criteria",
    "ALL",
  ];
  const output = ["--block-download", "--output-type", "unittest", "--output-destination", report];
  await promisify(execFile)(join(venv, "bin/focus-validator"), ["--data-file", file, ...options, ...output], {
    cwd: join(venv, globSync("lib/*/site-packages", { cwd: venv })[0] ?? ""),
    maxBuffer: 1e9,
  });
  const cases = [
    ...readFileSync(report, "utf8").matchAll(/<testcase name="([^ "]+)[^>]*>\s*<(failure|error|skipped)/g),
  ];
  expect(cases.length).toBeGreaterThan(100);
  return cases.flatMap(([, name = "", state]) => (state === "skipped" ? [] : [name]));
}
