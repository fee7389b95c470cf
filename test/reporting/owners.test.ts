import { parse } from "csv-parse/sync";
import { beforeEach, expect, test } from "vitest";
import { addDays, dayOf as nowDay } from "../../src/core/domain/time/days.ts";
import { applyOwners } from "../../src/features/owners/apply-owners.ts";
import { parseOwners } from "../../src/features/owners/owner-file.ts";
import { ownedState } from "../../src/features/owners/owners.store.ts";
import { ALL_DUE } from "../support/by-hand.ts";
import { CLOSE_MARCH, createMonths, createPrices } from "../support/charges.ts";
import { now } from "../support/clock.ts";
import { runHere } from "../support/in-process.ts";
import { connectPlain, setupSource, WORKSPACES } from "../support/reporting.ts";
import { loadRows, untilLockWaits, windowOf } from "../support/store.ts";
import { temporaryFile } from "../support/temporary.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const TAGGED = "10000000-0000-4000-8000-000000000001";
const PLAIN = "10000000-0000-4000-8000-000000000002";
const FILE = `# Who pays.
rules:
  - { project: ${PLAIN}, shares: [{ owner: search, cost_center: CC-1, share: 0.25 }, { owner: ads, share: 0.75 }] }
  - { project: no such project, owner: nobody }
`;

let bench: Awaited<ReturnType<typeof setupSource>>;
let url = "";
let client: Awaited<ReturnType<typeof connectPlain>>;

const usageEtl = (args: readonly string[], more: Record<string, string> = {}) =>
  runHere(args, { DATABASE_URL: url, ...more });

async function printed(args: readonly string[], env?: Record<string, string>, code = 0): Promise<string> {
  const ended = await usageEtl(args, env);
  expect([ended.code, ended.stderr]).toEqual([code, ""]);
  return ended.stdout;
}

const fileOf = (content: string, name = "owners.yaml") => temporaryFile(content, name);

const cells = (text: string) => text.split("\n").map((line) => line.trim().replaceAll(/ {2,}/g, " | "));

async function stored() {
  const rows = async (statement: string) => (await client.query(statement)).rows;
  return {
    files: await rows("SELECT * FROM usage.owner_file"),
    rules: await rows("SELECT * FROM usage.owner_rule JOIN usage.owner_share USING (rule_number) ORDER BY 1"),
    orders: await rows("SELECT action, detail FROM usage.operator_action ORDER BY action_id"),
  };
}

beforeEach(async () => {
  bench = await setupSource();
  url = bench.url;
  client = await connectPlain(url);
  await createMonths(bench, { [WORKSPACE]: { 0: 100, 35: 50 }, [OTHER]: { 0: 8 } });
  const of = { sourceId: bench.sourceId, workspaceId: WORKSPACE, groupBy: "project" as const };
  const march = windowOf("day", "2026-03-01", "2026-04-01");
  await loadRows(bench.store, {
    ...of,
    window: march,
    rows: [
      ["2026-03-01", TAGGED, 60, "checkout-agent"],
      ["2026-03-01", PLAIN, 30, "two\nlines"],
    ],
  });
  await loadRows(bench.store, {
    ...of,
    window: windowOf("day", "2026-04-01", "2026-05-01"),
    rows: [["2026-04-05", PLAIN, 50, "two\nlines"]],
  });
  await client.query(
    `INSERT INTO usage.resource_tag (workspace_id, dimension, external_id, tag_key, tag_value, valid_from)
     SELECT entity_id, 'project', '${TAGGED}', 'Application', 'check out', '1900-01-01' FROM usage.entity WHERE external_id = '${WORKSPACE}'`,
  );
  await createPrices(bench.store, [{ unitPrice: "0.5" }]);
});

test("a plan says what would change and changes nothing; after apply nothing would change", async () => {
  const file = fileOf(FILE);
  await client.query(CLOSE_MARCH);
  const before = await stored();
  const plan = await printed(["owners", "plan", file]);
  expect(await stored()).toEqual(before);
  expect(cells(plan)).toEqual([
    `${file}: 2 rules; traces are divided by project.`,
    "Closed months keep their totals, but their division would change: default 2026-03.",
    "These rules have no effect now, because nothing matches them or earlier rules match all of it: line 4.",
    "month | owner | cost centre | unit | before | after | change",
    "2026-04 | (unallocated) | (none) | traces | 50 | 0 | -50",
    "2026-04 | ads | (none) | traces | 0 | 37.5 | +37.5",
    "2026-04 | search | CC-1 | traces | 0 | 12.5 | +12.5",
    "2026-04 | (unallocated) | (none) | USD | 25.00 | 0.00 | -25.00",
    "2026-04 | ads | (none) | USD | 0.00 | 18.75 | +18.75",
    "2026-04 | search | CC-1 | USD | 0.00 | 6.25 | +6.25",
    "2026-03 | (unallocated) | (none) | traces | 108 | 78 | -30",
    "2026-03 | ads | (none) | traces | 0 | 22.5 | +22.5",
    "2026-03 | search | CC-1 | traces | 0 | 7.5 | +7.5",
    "2026-03 | (unallocated) | (none) | USD | 54.00 | 39.00 | -15.00",
    "2026-03 | ads | (none) | USD | 0.00 | 11.25 | +11.25",
    "2026-03 | search | CC-1 | USD | 0.00 | 3.75 | +3.75",
    "All 2 months together:",
    "owner | cost centre | unit | months | change",
    "(unallocated) | (none) | traces | 2 | -80",
    "ads | (none) | traces | 2 | +60",
    "search | CC-1 | traces | 2 | +20",
    "(unallocated) | (none) | USD | 2 | -40.00",
    "ads | (none) | USD | 2 | +30.00",
    "search | CC-1 | USD | 2 | +10.00",
    `Nothing was changed. To put these rules in force, run \`usage-etl owners apply ${file}\`.`,
    "",
  ]);
  const planned = JSON.parse(await printed(["owners", "plan", file, "--json"]));
  expect(planned).toMatchObject({ divideBy: "project", rules: 2, idle: [4], isApplied: false });

  const applied = JSON.parse(await printed(["owners", "apply", file, "--json"]));
  expect(applied).toEqual({ ...planned, isApplied: true });
  expect((await stored()).orders).toEqual([{ action: "owners.apply", detail: `${file}: 2 rules` }]);
  const again = await printed(["owners", "plan"], { USAGE_OWNERS_FILE: file });
  expect(again).toContain("No figure of an owner would change.\n");
  expect(again).not.toContain("Closed months");
  expect((await stored()).rules).toHaveLength(3);
  expect((await printed(["owners", "apply", file])).endsWith("\nThese rules are in force.\n")).toBe(true);
});

test("the bill by owner adds up to the bill, with corrections of what was closed, and says what is not known of it", async () => {
  await printed(["owners", "apply", fileOf(FILE)]);
  await client.query(CLOSE_MARCH);
  const isOther = `workspace_id = (SELECT entity_id FROM usage.entity WHERE dimension = 'workspace' AND external_id = '${OTHER}')`;
  await client.query(`DELETE FROM usage.closed_charge WHERE ${isOther}`);
  await client.query(`UPDATE usage.closed_workspace SET is_left_out = true WHERE ${isOther}; ${ALL_DUE}`);
  const linesOf = async (...flags: string[]) => cells(await printed(["bill", ...flags]));
  expect(await linesOf("2026-03", "--by", "owner")).toEqual([
    "Bill of 2026-03, default, by owner: an estimate from the imported prices, not an invoice",
    "owner | cost centre | traces | cost | share",
    "(unallocated) | (none) | 78 | 35.00 USD | 70 %",
    "ads | (none) | 22.5 | 11.25 USD | 22.5 %",
    "search | CC-1 | 7.5 | 3.75 USD | 7.5 %",
    "Total: 50.00 USD, closed.",
    "An invoice also has amounts that no API reports: seats, Fleet, Engine, tuned evaluators, taxes, discounts and credits. `usage-etl bill add` adds such a line.",
    "Not loaded by project: 31 days of workspaces. There, all traces go to the owner of the rest of the workspace.",
    "",
  ]);
  const april = await linesOf("2026-04", "--by", "owner");
  expect(april.slice(1, 6)).toEqual([
    "owner | cost centre | traces | cost | of it corrections | share",
    "(unallocated) | (none) | - | 4.00 USD | 4.00 USD | 13.8 %",
    "ads | (none) | 37.5 | 18.75 USD | - | 64.7 %",
    "search | CC-1 | 12.5 | 6.25 USD | - | 21.6 %",
    "Total: 29.00 USD, final, and not all of it proved.",
  ]);
  const file = await printed(["bill", "2026-04", "--by", "owner", "--bom"]);
  expect(file.startsWith("\ufeffsource_id,organization,month,")).toBe(true);
  const rows: Record<string, string>[] = parse(file, { bom: true, columns: true });
  const columns = [
    "row",
    "owner",
    "cost_center",
    "traces",
    "share_percent",
    "sku",
    "unit",
    "currency",
    "cost",
  ];
  const ofBill = ["estimated_cost", "corrections", "is_final", "days_undivided", "days_not_final"];
  expect(rows.map((row) => [...columns, ...ofBill].map((column) => row[column]).join(" | "))).toEqual([
    "line | (unallocated) | (none) |  | 13.8 | traces | traces | USD | 4 | 4 | 4 | false | 30 | 30",
    "line | ads | (none) | 37.5 | 64.7 | traces | traces | USD | 18.75 | 18.75 |  | false | 30 | 30",
    "line | search | CC-1 | 12.5 | 21.6 | traces | traces | USD | 6.25 | 6.25 |  | false | 30 | 30",
    "total |  |  |  |  |  |  | USD | 29 |  |  | false | 30 | 30",
  ]);
});

test("what is claimed of a month is about each of its days, also those without usage", async () => {
  const { store, sourceId } = bench;
  const stateOf = (from: string, to: string) =>
    ownedState(store.db, { source: "default", range: { from, to } });
  expect(await stateOf("2026-03-01", "2026-04-01")).toMatchObject({ daysMissing: 0, daysUndivided: 31 });
  // Zero today, which may change.
  const today = nowDay(now());
  const window = windowOf("day", today, addDays(today, 1));
  const daysMissing: number[] = [];
  for (const workspaceId of WORKSPACES) {
    for (const groupBy of ["workspace", "project"] as const) {
      daysMissing.push((await stateOf(today, addDays(today, 1))).daysMissing);
      await loadRows(store, { sourceId, workspaceId, groupBy, window, rows: [] });
    }
  }
  expect(daysMissing).toEqual([2, 1, 1, 0]);
  expect(await stateOf(today, addDays(today, 1))).toEqual({
    daysMissing: 0,
    daysUndivided: 0,
    open: [today],
  });
});

test("usage that is loaded during a plan is no change of an owner", async () => {
  const file = fileOf(FILE);
  await printed(["owners", "apply", file]);
  const other = await connectPlain(url);
  await other.query("BEGIN; LOCK TABLE usage.owner_rule IN SHARE MODE");
  const planned = printed(["owners", "plan", file]);
  await untilLockWaits(bench.store);
  await createMonths(bench, { [WORKSPACE]: { 0: 100, 1: 7, 35: 50 } });
  await other.query("COMMIT");
  expect(await planned).toContain("No figure of an owner would change.\n");
});

test("of two files that are applied at once, one follows the other", async () => {
  const by = { name: "test", role: "operator", via: "command" } as const;
  const contents = ["rules: [{ owner: a }]\n", "rules: [{ owner: b }]\n"];
  const outcomes = await Promise.all(
    contents.map((content, at) =>
      applyOwners(bench.store, { name: `${at}`, owners: parseOwners("owners.yaml", content), by }),
    ),
  );
  const before = outcomes.flatMap(({ changes }) =>
    changes.filter(({ change }) => change === "-108").map(({ owner }) => owner),
  );
  const { files, orders } = await stored();
  const last = contents.indexOf(files[0]?.content);
  expect(before.sort()).toEqual(["(unallocated)", last === 0 ? "b" : "a"]);
  expect(orders).toHaveLength(2);
});

test("a wrong file is refused by line and column, and the rules in force stay", async () => {
  await printed(["owners", "apply", fileOf(FILE)]);
  const before = await stored();
  const wrong = fileOf(
    "rules:\n  - { owner: a, to: 2026-13-01 }\n  - projekt: p\n    owner: a\n",
    "wrong.yaml",
  );
  for (const command of ["plan", "apply"]) {
    const { code, stdout, stderr } = await usageEtl(["owners", command, wrong]);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr.split("\n").slice(0, 3)).toEqual([
      `${wrong} was refused:`,
      '  line 2, column 21: "to" is not a day such as 2026-10-01',
      '  line 3, column 5: "projekt" is not known; did you mean project?',
    ]);
    expect(stderr).toContain("Nothing was changed. Correct the file and try again. [file_invalid]");
  }
  expect(await stored()).toEqual(before);
  expect(await printed(["owners", "export"])).toBe(FILE);
  const { stdout, stderr } = await usageEtl(["owners", "export", "--format", "csv"]);
  expect(stderr).toBe("Comments are left out.\n");
  const { stdout: marked } = await usageEtl(["owners", "export", "--bom"]);
  expect(marked).toBe(`\ufeff${stdout}`);
  const table = fileOf(marked, "table.csv");
  expect(await printed(["owners", "plan", table])).toContain("No figure of an owner would change.");
});
