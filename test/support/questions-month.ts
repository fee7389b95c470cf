import { DateTime } from "luxon";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { learnMeters } from "../../src/core/pipeline/source/learn-meters.ts";
import { readResourceTags } from "../../src/features/costs/read-terms.ts";
import { createPrices } from "./charges.ts";
import { EVERYTHING, inMeterLedger, setupMeters } from "./meters.ts";
import { acceptOpen, closeBenchMonth } from "./month.ts";
import { setOwners } from "./owners.ts";
import { QUESTIONS } from "./questions.ts";
import { connectPlain } from "./reporting.ts";
import { senderOn, workspaceAt } from "./source.ts";

export const PRICE = 0.0137;
export const BUDGET = 1000;
export const CHANGED_BY = 25;
export const [CHANGED, LOST, FIRST_PRICED, HOURS_FROM] = [9, 16, 2, 21];

export interface Cell {
  readonly meter: string;
  readonly measure: string;
  readonly by: string;
  readonly day: string;
  readonly workspace: string;
  readonly id: string;
  readonly amount: number;
}

export const dayOf = (at: number) => new Date(at).toISOString().slice(0, 10);

/**
 * A loaded, closed and owned month, and the one before it, for the questions of docs/bi.md. The first workspace is whole, and changed
 * after its month was closed; the second one lacks a day.
 */
export async function setupQuestions() {
  const bench = await setupMeters({
    days: 100,
    standin: { scale: 0.6, tags: "on" },
    hourlyForMs: 70 * DAY_MS,
  });
  const { standin, store, now } = bench;
  const month = DateTime.fromMillis(now - 4 * DAY_MS, { zone: "utc" })
    .startOf("month")
    .minus({ months: 1 });
  const [start, end] = [month.toMillis(), month.plus({ months: 1 }).toMillis()];
  const before = month.minus({ months: 1 }).toMillis();
  const at = (place: number) => start + place * DAY_MS;
  const [whole, lacking] = [workspaceAt(standin, 0), workspaceAt(standin, 1)];

  standin.settings.contract = "tiered";
  const hours = { stride: "hour", range: { start: at(HOURS_FROM), end } } as const;
  await bench.fetch({ wanted: [hours], reprocess: "missing" });
  standin.settings.contract = "day-granular";
  await learnMeters(await bench.open(EVERYTHING));
  const during = { from: new Date(at(LOST)).toISOString(), to: new Date(at(LOST + 1)).toISOString() };
  const refusal = { fault: { kind: "status", status: 422 }, times: 1000 } as const;
  standin.faults.set({ script: [{ ...refusal, match: { during, query: { workspace_ids: lacking.id } } }] });
  const range = { start: before, end };
  const meters = EVERYTHING.settings.meters.map((meter) => ({ meter, stride: "day", range }) as const);
  await bench.fetch({ wanted: meters, reprocess: "missing" }, EVERYTHING);
  await readResourceTags(await bench.open());
  await bench.reconcile({ range: { start, end } });

  const { project } = senderOn(standin, 0, start);
  await createPrices(store, [
    { unitPrice: String(PRICE), workspace: whole.id },
    { unitPrice: String(PRICE), workspace: lacking.id, from: dayOf(at(FIRST_PRICED)) },
  ]);
  await setOwners(
    store,
    `rules: [{ project: ${project.id}, owner: search, cost_center: CC-1 }]
budgets: [{ owner: search, traces: ${BUDGET} }]`,
  );
  const closed = await acceptOpen((accept) =>
    closeBenchMonth(bench, dayOf(start), { withoutCosts: false, ...accept }),
  );
  if (closed.state !== "closed") throw new Error(`the month is ${JSON.stringify(closed)}`);
  const workspaceIds = [whole.id, lacking.id];
  const ledger = () =>
    EVERYTHING.settings.meters
      .flatMap((meter) => [...inMeterLedger(standin, { meter, range, workspaceIds })])
      .map(([line, amount]): Cell => {
        const [meter = "", measure = "", by = "", day = "", workspace = "", id = ""] = line.split(" ");
        return { meter, measure, by, day, workspace, id, amount };
      })
      .filter(({ workspace, day }) => workspace !== lacking.id || day !== dayOf(at(LOST)));
  const whenClosed = ledger();
  standin.ledger.change(senderOn(standin, 0, at(CHANGED)), CHANGED_BY);
  await bench.fetch(
    { wanted: [{ stride: "day", range: { start: at(CHANGED), end: at(CHANGED + 1) } }], reprocess: "all" },
    EVERYTHING,
  );

  const reader = await connectPlain(bench.databaseUrl, "usage_reader");
  const inMonth = (text: string) =>
    // In one pass: a new day may look like an old one.
    text.replaceAll(/2026-(09|10|11)-(\d\d)/g, (_, month, day) =>
      dayOf({ "09": before, "11": end }[month as string] ?? at(Number(day) - 1)),
    );
  const request = async (number: number) => {
    const question = QUESTIONS.get(number);
    if (question === undefined) throw new Error(`docs/bi.md has no question ${number}`);
    const { rows } = await reader.query<(string | null)[]>({ text: inMonth(question), rowMode: "array" });
    return rows.map((row) =>
      row.map((cell) => (cell !== null && /^-?\d+(\.\d+)?$/.test(cell) ? Number(cell) : cell)),
    );
  };
  const daysIn = (end - start) / DAY_MS;
  return {
    bench,
    standin,
    inMonth,
    request,
    cells: ledger(),
    whenClosed,
    start,
    end,
    before,
    at,
    daysIn,
    whole,
    lacking,
    project,
  };
}
