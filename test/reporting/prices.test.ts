import { describe, expect, test } from "vitest";
import type { Store } from "../../src/core/store/db/database.ts";
import { importPrices } from "../../src/features/costs/import-prices.ts";
import { readPriceFile } from "../../src/features/costs/price-file.ts";
import { listPrices } from "../../src/features/costs/prices.store.ts";
import { usageEtl } from "../support/cli.ts";
import { setupSource, WORKSPACES } from "../support/reporting.ts";
import { temporaryFile } from "../support/temporary.ts";

const [WORKSPACE, OTHER] = WORKSPACES;
const HEADER = "sku,unit_price,currency,valid_from,valid_to,source,workspace\n";

const fileOf = (text: string | Uint8Array, name = "prices.csv") => temporaryFile(text, name);

test("prices of deployments by runs or uptime end with September 2026, unless they are asked for as an estimate", async () => {
  const { url } = await setupSource();
  const file = fileOf(
    "sku,unit_price,currency,valid_from,valid_to,measure\nRuns,1,USD,2026-01-01,2026-10-01,agent_runs\nNodes,1,USD,2026-01-01,,nodes_executed\nTraces,1,USD,2026-01-01,,\n",
  );
  const refused = await usageEtl(["prices", "import", file], { DATABASE_URL: url });
  expect([refused.code, refused.stderr.split("\n")[1]]).toEqual([
    2,
    '  line 3, column "valid_to": from 2026-10-01 on deployments are charged by compute and storage units (LCU, LSU), not by nodes_executed. End the price on 2026-10-01, or import the file with --estimate',
  ]);
  const accepted = await usageEtl(["prices", "import", file, "--estimate"], { DATABASE_URL: url });
  expect(accepted.stdout).toContain("3 prices added");
  expect(accepted.stderr).toContain("estimates that no invoice has");
});

async function read(store: Store, text: string, { replace = false } = {}) {
  const file = fileOf(text, "prices.csv");
  return importPrices(store, { file, lines: await readPriceFile(file), replace });
}

async function problemsOf(importing: Promise<unknown>): Promise<string[]> {
  const error = (await importing.then(
    () => new Error("it was imported"),
    (failure: unknown) => failure,
  )) as Error;
  expect(error).toMatchObject({ code: "file_invalid" });
  const [first, ...problems] = error.message.split("\n  ");
  expect(first).toMatch(/was refused:$/);
  return problems;
}

const lines = async (store: Store) =>
  (await listPrices(store.db)).map((one) =>
    [one.sku, one.unitPrice, one.currency, one.validFrom, one.validTo, one.source, one.workspace].join(" "),
  );

describe("an import", () => {
  test("stores every digit", async () => {
    const { store } = await setupSource();
    const csv = `\uFEFF${HEADER}"traces, base",0.0000000001,USD,2026-01-01,,,\r\ntraces,12345678.0123456789,EUR,2026-01-01,2026-07-01,default,${OTHER.toUpperCase()}\r\n`;
    expect(await read(store, csv)).toMatchObject({ added: 2, unchanged: 0, removed: 0 });
    const stored = [
      `traces 12345678.0123456789 EUR 2026-01-01 2026-07-01 default ${OTHER}`,
      "traces, base 0.0000000001 USD 2026-01-01   ",
    ];
    expect(await lines(store)).toEqual(stored);
  });

  test("changes nothing when repeated; with --replace the file becomes the whole list, and equal prices stay", async () => {
    const { store } = await setupSource();
    const first = "traces,0.0005,USD,2026-01-01,2026-07-01,,\n";
    await read(store, `${HEADER}${first}traces,0.0006,USD,2026-07-01,,,\n`);
    const before = await listPrices(store.db);
    expect(await read(store, `${HEADER}${first}`)).toMatchObject({ added: 0, unchanged: 1, removed: 0 });
    expect(await listPrices(store.db)).toEqual(before);

    const replaced = await read(store, `${HEADER}${first}other,1,USD,2026-07-01,,,\n`, { replace: true });
    expect(replaced).toMatchObject({ added: 1, unchanged: 1, removed: 1 });
    const after = await listPrices(store.db);
    expect(after.map((one) => one.sku)).toEqual(["other", "traces"]);
    expect(after[1]).toEqual(before[0]);
    expect(await read(store, HEADER, { replace: true })).toMatchObject({ removed: 2 });
    expect(await listPrices(store.db)).toEqual([]);
  });

  test("waits for another import, and both are stored", async () => {
    const { store } = await setupSource();
    const row = "traces,0.0005,USD,2026-01-01,,,\n";
    const both = await Promise.allSettled([
      read(store, `${HEADER}${row}`),
      read(store, `${HEADER}traces,0.0006,USD,2026-01-01,,,\n`),
    ]);
    expect(both.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(await listPrices(store.db)).toHaveLength(1);
  });
});

describe("an import is refused and stores nothing", () => {
  const good = "traces,0.0005,USD,2026-01-01,2026-02-01,,\n";
  const ROWS: readonly (readonly [row: string, problem: string])[] = [
    ["traces,-0.0005,USD,2026-01-01,,,", 'line 3, column "unit_price": "-0.0005" is negative'],
    [
      "traces,1,EURO,2026-02-01,,,",
      'line 3, column "currency": "EURO" is not a currency of ISO 4217; did you mean EUR?',
    ],
    ["traces,1,USD,2026-02-30,,,", 'column "valid_from": "2026-02-30" is not a day'],
    ["traces,1,USD,2026-02-01,2026-02-01,,", 'column "valid_to": "2026-02-01" is not after valid_from'],
    ["traces,1,USD,2026-02-01,soon,,", 'column "valid_to": "soon" is not a day'],
    ["traces,1,USD,01.03.2026,,,", 'column "valid_from": "01.03.2026" is not a day'],
    [",1,USD,2026-02-01,,,", 'column "sku": "" is not a SKU'],
    [
      "traces,1,USD,2026-02-01,,defualt,",
      'column "source": "defualt" is not a known source; did you mean default?',
    ],
    [
      `traces,1,USD,2026-02-01,,,${WORKSPACE.slice(0, -1)}3`,
      `column "workspace": "${WORKSPACE.slice(0, -1)}3" is not a known workspace; did you mean ${WORKSPACE}?`,
    ],
    [
      "traces,1,USD,2026-01-31,,,",
      'line 3, column "valid_from": 2026-01-31 to further notice overlaps line 2 (traces',
    ],
    ["traces,1,USD,2026-02-01,,,,x", 'line 3: cell 8 ("x") has no column'],
    ['"traces,1,USD,2026-02-01,,,', "line 3: Quote Not Closed"],
  ];
  const TIERS: readonly (readonly [row: string, problem: string])[] = [
    [
      "0.4,EUR,1000,",
      'line 3, column "currency": EUR is not the currency of line 2, whose tier this is (USD)',
    ],
    ["0.4,USD,1000.5,", 'line 3, column "from_quantity": "1000.5" is not a whole number of traces'],
    ["0.4,USD,-1,", 'line 3, column "from_quantity": "-1" is not a whole number of traces'],
    ["0.4,USD,1000,month", 'line 3, column "counted_over": "month" is not source or workspace'],
    ["0.4,USD,,", 'line 3, column "valid_from": 2026-01-01 to further notice overlaps line 2'],
  ];

  test("for any row or tier that is wrong, named by its line and column", async () => {
    const { store } = await setupSource();
    const tier =
      "sku,valid_from,unit_price,currency,from_quantity,counted_over\ntraces,2026-01-01,0.5,USD,0,\ntraces,2026-01-01,";
    for (const [before, rows] of [
      [`${HEADER}${good}`, ROWS],
      [tier, TIERS],
    ] as const) {
      for (const [row, problem] of rows) {
        const problems = await problemsOf(read(store, `${before}${row}\n`));
        expect(problems, row).toEqual([expect.stringContaining(problem)]);
      }
    }
    expect(await listPrices(store.db)).toEqual([]);
  });
});

test("the command imports and lists prices, and notes SKUs that charge the same traces", async () => {
  const { url } = await setupSource();
  const env = { DATABASE_URL: url };
  expect((await usageEtl(["prices", "list"], env)).stdout).toContain("No prices");
  const file = fileOf(`${HEADER}base,0.0005,USD,2026-01-01,,,\nretention,0.0045,USD,2026-01-01,,,\n`);
  const imported = await usageEtl(["prices", "import", file, "--json"], env);
  expect(JSON.parse(imported.stdout)).toMatchObject({ added: 2, stored: 2, charges: 0 });
  expect(imported.stderr).toContain("The SKUs base and retention are valid on the same days");
  const listed = await usageEtl(["prices", "list", "--json"], env);
  expect(JSON.parse(listed.stdout)).toMatchObject([
    { sku: "base", unitPrice: "0.0005" },
    { sku: "retention" },
  ]);
  const tiers =
    "sku,unit_price,currency,valid_from,from_quantity\nbase,0,USD,2026-01-01,0\nbase,0.0005,USD,2026-01-01,100000\n";
  const tiered = await usageEtl(["prices", "import", fileOf(tiers), "--replace"], env);
  expect(tiered.stdout).toContain("1 price added, 0 unchanged, 2 removed; 1 stored.");
  const steps = (await usageEtl(["prices", "list"], env)).stdout.split("\n");
  expect(steps.map((line) => line.trim().replaceAll(/ {2,}/g, " | "))).toEqual([
    "sku | unit price | currency | valid from | valid to | source | workspace | from quantity | counted over",
    "base | 0 | USD | 2026-01-01 | - | (all) | (all) | 0 | source",
    "base | 0.0005 | USD | 2026-01-01 | - | (all) | (all) | 100,000 | source",
    "",
  ]);
  const row = (...cells: string[]) => `${cells.join("\t")}\r\n`;
  const head = row("SKU", "Unit Price", "Currency", "Valid From", "From Quantity");
  const tiersOfBase =
    row("base", "0,25", "USD", "2026-01-01", "0") + row("base", "0,125", "USD", "2026-01-01", "1.000.000");
  const german = (rows: string) =>
    fileOf(Buffer.from(`\ufeff${head}${rows}${"\t\t\t\t\r\n".repeat(9)}`, "utf16le"));
  expect((await usageEtl(["prices", "import", german(tiersOfBase), "--replace"], env)).code).toBe(0);
  const stored = async () => JSON.parse((await usageEtl(["prices", "list", "--json"], env)).stdout);
  const before = await stored();
  expect(before).toMatchObject([
    { sku: "base", unitPrice: "0.25", tiers: [{ fromQuantity: 1_000_000, unitPrice: "0.125" }] },
  ]);
  const wrong = german(
    `${row("base", "0,5", "USD", "2026-01-01", "0")}${row("more", "0,5 $", "USD", "2026-01-01", "")}`,
  );
  const refused = await usageEtl(["prices", "import", wrong, "--replace"], env);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining('line 3, column "unit_price"')]);
  expect(await stored()).toEqual(before);
  // A file that lost its lines removes no price unless somebody says so.
  const empty = fileOf(HEADER);
  const kept = await usageEtl(["prices", "import", empty, "--replace"], env);
  expect(kept.code).toBe(2);
  expect(kept.stderr).toMatch(
    /holds no prices.*would remove every stored price.*add --yes\. \[price_file_empty\]/s,
  );
  const gone = await usageEtl(["prices", "import", empty, "--replace", "--yes", "--json"], env);
  expect(JSON.parse(gone.stdout)).toMatchObject({ added: 0, removed: 1, stored: 0 });
});
