import { readFile } from "node:fs/promises";
import pg from "pg";
import { expect, onTestFinished, test, vi } from "vitest";
import { enterPrices } from "../support/charges.ts";
import { setOwners } from "../support/owners.ts";
import { connect, connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadDeploymentRows, loadRows, windowOf } from "../support/store.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const ID = (last: string) => `00000000-0000-4000-8000-0000000000${last}`;

/** Results of the questions, in their order. */
const EXPECTED: readonly (readonly string[])[] = [
  ["Research | 42 | 17 | f", "Support | 5 | 30 | f"],
  ["Research | chat | 30 | 6", "Research | (null) | (null) | 6", "Support | chat | (null) | 2"],
  [`ada@example.test | 30 | 71.4`, `${ID("0d")} | 12 | 28.6`],
  [
    "api_key | missing | 28 | 2026-03-01 | 2026-03-14",
    "project | missing | 13 | 2026-03-02 | 2026-03-14",
    "project | empty | 11 | 2026-03-02 | 2026-03-14",
    "project | ok | 4 | 2026-03-01 | 2026-03-08",
    "user | empty | 13 | 2026-03-02 | 2026-03-14",
    "user | missing | 14 | 2026-03-01 | 2026-03-14",
    "user | ok | 1 | 2026-03-01 | 2026-03-01",
    "workspace | empty | 11 | 2026-03-02 | 2026-03-14",
    "workspace | missing | 13 | 2026-03-02 | 2026-03-14",
    "workspace | ok | 4 | 2026-03-01 | 2026-03-08",
  ],
  [`2026-03-01 | ${OTHER} | 4 | 5`],
  ["Research | 42 | 10 | 21 | 2026-03-20 06:00:00+00", "Support | (null) | 0 | 31 | (null)"],
  ["2026-03-01 | Research | USD | 0.0210000000 | t", "2026-03-01 | Support | USD | 0.0025000000 | t"],
  // The users have more traces than the workspace on one day, and fewer on others.
  [
    "ada@example.test | USD | 0.0150000000",
    `${ID("0d")} | USD | 0.0060000000`,
    "(none) | USD | 0.0000000000",
    "not loaded by user | USD | 0.0025000000",
  ],
  ["traces | 0 | 0 | 0.0005000000 | USD | (null) | (null)"],
  // Of the other workspace, 2 of 5 traces are of the project that is shared.
  [
    "(unallocated) | (none) | USD | 0.00450000000000 | 19.1 | t",
    "chat | (none) | USD | 0.01875000000000 | 79.8 | t",
    "search | CC-1 | USD | 0.00025000000000 | 1.1 | t",
  ],
  ["Research | chat | 36 | 9 | 0.250000 | (null) | 0", "Research | (null) | 6 | 0 | 0.000000 | (null) | 0"],
  ["Research | bot | 12 | 3 | 90 | t"],
];

test("every question of docs/examples/questions.sql returns the rows that it describes", async () => {
  const { store, url, sourceId } = await setupSource();
  const load = (
    groupBy: "workspace" | "project" | "user",
    workspaceId: string,
    [from, to]: readonly [string, string],
    rows: Parameters<typeof loadRows>[1]["rows"],
  ) => loadRows(store, { sourceId, groupBy, workspaceId, window: windowOf("day", from, to), rows });
  const fortnight = ["2026-03-01", "2026-03-15"] as const;
  await load("workspace", WORKSPACE, fortnight, [
    ["2026-03-01", WORKSPACE, 10, "Research"],
    ["2026-03-03", WORKSPACE, 2, "Research"],
    ["2026-03-08", WORKSPACE, 30, "Research"],
  ]);
  for (const traces of [4, 5]) {
    await load("workspace", OTHER, ["2026-03-01", "2026-03-02"], [["2026-03-01", OTHER, traces, "Support"]]);
  }
  await load("project", WORKSPACE, fortnight, [
    ["2026-03-01", ID("0a"), 6, "chat"],
    ["2026-03-03", "", 6],
    ["2026-03-08", ID("0a"), 30, "chat"],
  ]);
  // The rest of the month, and what is counted beside traces.
  await load("project", WORKSPACE, ["2026-03-15", "2026-04-01"], []);
  const march = { sourceId, groupBy: "project" as const, workspaceId: WORKSPACE };
  const month = windowOf("day", "2026-03-01", "2026-04-01");
  await loadRows(store, {
    ...march,
    meter: "longlived",
    window: month,
    rows: [["2026-03-08", ID("0a"), 9, "chat"]],
  });
  await loadDeploymentRows(store, {
    ...{ ...march, window: month },
    rows: [
      ["2026-03-01", ID("0a"), [7, 2, 60], "bot"],
      ["2026-03-02", ID("0a"), [5, 1, 30], "bot"],
    ],
  });
  // Workspaces have projects of the same name.
  await load("project", OTHER, ["2026-03-01", "2026-03-02"], [["2026-03-01", ID("0b"), 2, "chat"]]);
  await load("user", WORKSPACE, fortnight, [
    ["2026-03-01", ID("0c"), 30, "ada@example.test"],
    ["2026-03-01", ID("0d"), 12],
  ]);
  await store.transaction(({ client }) =>
    client.query(
      `INSERT INTO usage.reconciled (scope_id, period_start, period_end, fetch_number, reconciled_at)
       SELECT c.scope_id, '2026-03-01Z', '2026-03-11Z', 99, '2026-03-20 06:00Z'
       FROM usage.trace_scope c JOIN usage.entity w ON w.entity_id = c.workspace_id
       WHERE c.group_by = 'workspace' AND c.stride = 'day' AND w.external_id = $1`,
      [WORKSPACE],
    ),
  );
  await enterPrices(store, [{ unitPrice: "0.0005" }]);
  const shares = "shares: [{ owner: search, cost_center: CC-1, share: 0.25 }, { owner: chat, share: 0.75 }]";
  const rules = `rules:\n  - { project: ${ID("0b")}, ${shares} }\n  - { name: chat, owner: chat }`;
  await setOwners(store, rules);

  const reader = await connectPlain(url, "usage_reader");
  const questions = (await document("examples/questions.sql")).split(/;\n/).slice(0, -1);
  expect(questions).toHaveLength(EXPECTED.length);
  for (const [at, question] of questions.entries()) {
    const { rows } = await reader.query<Record<string, string | null>>(question);
    const lines = rows.map((row) =>
      Object.values(row)
        .map((value) => value ?? "(null)")
        .join(" | "),
    );
    // Rows of equal rank have no order of their own.
    expect(lines.toSorted(), question).toEqual(EXPECTED[at]?.toSorted());
  }
});

test("every SQL block of docs/views.md runs", async () => {
  const { url } = await setupSource();
  const client = await connect(url);
  for (const [, block = ""] of (await document("views.md")).matchAll(/^```sql\n(.*?)^```$/gms)) {
    // Roles belong to the whole server: what makes one is taken back.
    await client.query("BEGIN");
    await client.query(block);
    await client.query("ROLLBACK");
  }
});

test("the login of dashboards has the settings that docs/views.md names", async () => {
  const settingsIn = async (path: string) =>
    [...(await document(path)).matchAll(/^ALTER ROLE \w+ SET (.*?);/gm)].map(([, setting]) => setting).sort();
  const documented = await settingsIn("views.md");
  expect(documented).toEqual(expect.arrayContaining(["timezone = 'UTC'", "statement_timeout = '60s'"]));
  expect(await settingsIn("deploy/monitoring/reader.sql")).toEqual(documented);
});

test("node-postgres moves a date east of UTC, and keeps it under TZ=UTC, as docs/views.md says", () => {
  const read = pg.types.getTypeParser(pg.types.builtins.DATE);
  onTestFinished(() => void vi.unstubAllEnvs());
  vi.stubEnv("TZ", "Asia/Tokyo");
  expect(read("2026-03-01").toISOString()).toBe("2026-02-28T15:00:00.000Z");
  vi.stubEnv("TZ", "UTC");
  expect(read("2026-03-01").toISOString()).toBe("2026-03-01T00:00:00.000Z");
});

async function document(path: string): Promise<string> {
  return await readFile(new URL(`../../docs/${path}`, import.meta.url), "utf8");
}
