import { type Command, Option } from "commander";
import { printable } from "../../core/base/printable.ts";
import { type CalendarMonth, monthAt, monthBefore } from "../../core/domain/months/month.ts";
import { neverReadProblem } from "../../core/pipeline/never-read.ts";
import { type NamedWorkspace, neverRead } from "../../core/store/access/withdrawn-zeros.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { withSource } from "../../terminal/options.ts";
import { linesOf, tableOf } from "../../terminal/output.ts";
import { inSessionOfSource, type Session } from "../../terminal/session.ts";
import { begunMonth, sourcesToClose } from "../catalog/named.ts";
import { asCsv, BYTE_ORDER_MARK, bomOption, type Table } from "../export/table-file.ts";
import {
  billTotals,
  describeTotal,
  describeUnloaded,
  lineName,
  lineState,
  shownAmount,
  type UnloadedWorkspace,
} from "./bill.ts";
import { monthBill } from "./bill-lines.store.ts";
import { unloadedWorkspaces } from "./bill-terms.store.ts";
import { billTable, type MonthBill } from "./month-bill.ts";
import {
  type BillByOwner,
  billByOwner,
  billByOwnerTable,
  billByOwnerToData,
  describeBillByOwner,
} from "./owner-bill.ts";

interface BillOptions {
  readonly by?: "owner";
  readonly csv?: boolean;
  readonly bom?: boolean;
}

interface SourceBill extends MonthBill {
  readonly month: CalendarMonth;
  readonly dataStart: string;
  readonly neverRead: readonly NamedWorkspace[];
  readonly unloaded: readonly UnloadedWorkspace[];
}

export const examples = [
  ["bill 2026-10", "October, line by line"],
  ["bill 2026-10 --bom > bill.csv", "the same for Excel"],
  ["bill 2026-10 --by owner", "who pays for October: traces, costs and shares"],
] as const;

export function define(command: Command): void {
  withSource(command)
    .argument("[month]", "such as 2026-10; default: the last one that is over")
    .addOption(new Option("--by <what>", "divide it by who pays, from the owner file").choices(["owner"]))
    .option("--csv", "print the lines as CSV")
    .addOption(bomOption({ csv: true }))
    .action(inSessionOfSource(run));
}

async function run(
  session: Session,
  { by, csv = false, bom = false }: BillOptions,
  text?: string,
): Promise<undefined> {
  const { output, config } = session;
  const { db } = await session.migratedStore();
  const now = await storeNow(db);
  const month = text === undefined ? monthBefore(monthAt(now)) : begunMonth(text, now);
  const sources = await sourcesToClose(
    db,
    config.sources.map(({ slug }) => slug),
  );
  // With `--json`, stdout has only JSON.
  const print = (data: readonly unknown[], table: Table, describe: () => string) =>
    csv && !output.json ? printCsv(table, bom) : output.data(data, describe);
  if (by === "owner") {
    const bills: BillByOwner[] = [];
    for (const { source, dataStart } of sources)
      bills.push(await billByOwner(db, { source, dataStart, month, now }));
    return print(
      bills.map((bill) => billByOwnerToData(month, bill)),
      billByOwnerTable(month, bills),
      () => bills.map((bill) => describeBillByOwner(month, bill)).join("\n\n"),
    );
  }
  const bills: SourceBill[] = [];
  const unread = await neverRead(db);
  for (const { source, dataStart } of sources) {
    const lines = await monthBill(db, { source, monthStart: month.start });
    const ofSource = unread.filter((one) => one.source === source).map(({ source: _, ...one }) => one);
    const unloaded = await unloadedWorkspaces(db, { source, monthStart: month.start });
    bills.push({ source, month, dataStart, lines, neverRead: ofSource, unloaded });
  }
  return print(
    bills.map((bill) => ({ ...bill, month: month.name })),
    billTable(bills),
    () => bills.map(describeBill).join("\n\n"),
  );
}

function printCsv(table: Table, bom: boolean): undefined {
  const text = `${bom ? BYTE_ORDER_MARK : ""}${asCsv(table)}`;
  process.stdout.write(process.stdout.isTTY ? printable(text) : text);
}

function describeBill({ source, month, dataStart, lines, neverRead, unloaded }: SourceBill): string {
  const isClosed = lines.some((line) => line.isClosed);
  return linesOf(
    `Bill of ${month.name}, ${source}: an estimate from the imported prices, not an invoice`,
    lines.length > 0 &&
      tableOf(lines, {
        what: lineName,
        SKU: ({ line, sku }) => (line === "unpriced" ? null : sku),
        quantity: ({ quantity }) => shownAmount(quantity),
        "unit price": ({ unitPrice }) => shownAmount(unitPrice),
        cost: ({ cost, currency }) => (cost === null ? null : `${shownAmount(cost)} ${currency}`),
        state: lineState,
      }),
    describeTotal(lines, { month, dataStart, unloaded }),
    !isClosed && neverReadProblem(neverRead)?.message,
    describeUnloaded(unloaded),
    isClosed &&
      "The month is closed. What changed since, in counts or prices, is a correction in the bill of the first month after it that is open.",
    billTotals(lines).length === 0 &&
      lines.some(({ line }) => line === "unpriced") &&
      "Import prices with `usage-etl prices import FILE`.",
  );
}
