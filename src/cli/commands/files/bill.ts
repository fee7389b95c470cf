import { type Command, Option } from "commander";
import {
  type BillLine,
  billTotals,
  describeTotal,
  lineName,
  lineState,
  shownAmount,
} from "../../../domain/bill/bill.ts";
import { type CalendarMonth, monthAt, monthBefore } from "../../../domain/months/month.ts";
import { begunMonth, sourcesToClose } from "../../../pipeline/months/close.ts";
import { printable } from "../../../printable.ts";
import { billTable } from "../../../service/web/months/bill.ts";
import { html } from "../../../service/web/parts.ts";
import { monthBill } from "../../../store/bill/bill-lines.ts";
import type { Store } from "../../../store/db/database.ts";
import { copyRows, csvForm } from "../../../store/export/view-rows.ts";
import { storeNow } from "../../../store/load/fetch-ledger.ts";
import { linesOf, tableOf } from "../../report/output.ts";
import { withSource } from "../../session/options.ts";
import { inSessionOfSource, type Session } from "../../session/session.ts";
import {
  type BillByOwner,
  billByOwner,
  billByOwnerCsv,
  billByOwnerToData,
  describeBillByOwner,
} from "./owner-bill.ts";
import { selectionOf } from "./selection.ts";
import { openStdoutTarget } from "./target.ts";

interface BillOptions {
  readonly by?: "owner";
  readonly csv?: boolean;
  readonly html?: boolean;
}

interface SourceBill {
  readonly source: string;
  /** First day that is loaded, ISO. */
  readonly dataStart: string;
  readonly lines: readonly BillLine[];
}

export const examples = [
  ["bill 2026-10", "October, line by line"],
  ["bill 2026-10 --csv > bill.csv", "the same for a spreadsheet"],
  ["bill 2026-10 --by owner", "who pays for October: traces, costs and shares"],
] as const;

export function define(command: Command): void {
  withSource(command)
    .argument("[month]", "such as 2026-10; default: the last one that is over")
    .addOption(
      new Option("--by <what>", "divide it by who pays, from the owner file")
        .choices(["owner"])
        .conflicts("html"),
    )
    .addOption(new Option("--csv", "print the lines as CSV").conflicts("html"))
    .option("--html", "print a page that a browser shows and prints")
    .action(inSessionOfSource(run));
}

/** Reads the tables, and asks the platform nothing. */
async function run(session: Session, { by, csv = false, html = false }: BillOptions, text?: string) {
  const store = await session.migratedStore();
  const now = await storeNow(store.db);
  const month = text === undefined ? monthBefore(monthAt(now)) : begunMonth(text, now);
  const slugs = session.config.sources.map(({ slug }) => slug);
  const sources = await sourcesToClose(store.db, slugs);
  if (by === "owner") return printByOwner(session, store, { month, now, sources, csv });
  // `--json` promises JSON on stdout.
  if (csv && !session.output.json)
    return printCsv(session, store, { month, sources: sources.map(({ source }) => source) });
  const bills: SourceBill[] = [];
  for (const { source, dataStart } of sources) {
    bills.push({ source, dataStart, lines: await monthBill(store.db, { source, monthStart: month.start }) });
  }
  if (html && !session.output.json) {
    process.stdout.write(`${String(await page(month, bills))}\n`);
    return undefined;
  }
  const data = bills.map((bill) => ({ ...bill, month: month.name }));
  return session.output.data(data, () => bills.map((bill) => describeBill(month, bill)).join("\n\n"));
}

async function printByOwner(
  { output }: Session,
  store: Store,
  {
    month,
    now,
    sources,
    csv,
  }: { month: CalendarMonth; now: number; sources: Awaited<ReturnType<typeof sourcesToClose>>; csv: boolean },
): Promise<undefined> {
  const bills: BillByOwner[] = [];
  for (const { source, dataStart } of sources)
    bills.push(await billByOwner(store.db, { source, dataStart, month, now }));
  if (csv && !output.json) {
    const text = billByOwnerCsv(month, bills);
    process.stdout.write(process.stdout.isTTY ? printable(text) : text);
    return undefined;
  }
  return output.data(
    bills.map((bill) => billByOwnerToData(month, bill)),
    () => bills.map((bill) => describeBillByOwner(month, bill)).join("\n\n"),
  );
}

function describeBill(month: CalendarMonth, { source, dataStart, lines }: SourceBill): string {
  return linesOf(
    titleOf(month, source),
    lines.length > 0 &&
      tableOf(lines, {
        what: lineName,
        SKU: ({ line, sku }) => (line === "unpriced" ? null : sku),
        quantity: ({ quantity }) => shownAmount(quantity),
        "unit price": ({ unitPrice }) => shownAmount(unitPrice),
        cost: ({ cost, currency }) => (cost === null ? null : `${shownAmount(cost)} ${currency}`),
        state: lineState,
      }),
    describeTotal(lines, { month, dataStart }),
    lines.some(({ isClosed }) => isClosed) &&
      "The month is closed. What changed since, in counts or prices, is a correction in the bill of the first month after it that is open.",
    billTotals(lines).length === 0 &&
      lines.some(({ line }) => line === "unpriced") &&
      "Import prices with `usage-etl prices import FILE`.",
  );
}

function titleOf({ name }: CalendarMonth, source: string): string {
  return `Bill of ${name}, ${source}: an estimate from the imported prices, not an invoice`;
}

async function printCsv(
  session: Session,
  store: Store,
  { month, sources }: { month: CalendarMonth; sources: readonly string[] },
): Promise<undefined> {
  const target = openStdoutTarget(process.stdout);
  const selection = await selectionOf(store.db, {
    view: "usage_bill_monthly",
    from: Date.parse(month.start),
    to: Date.parse(month.end),
    where: sources.map((source) => ["source_id", source] as const),
  });
  const wanted = { ...selection, store, signal: session.signal };
  await copyRows(wanted, csvForm(wanted, { guard: true }), target.write).finally(() => target.abandon());
}

/** For a bill on paper or in a PDF: black on white, and no line on two pages. */
const STYLE = `
  body { font: 11pt/1.4 system-ui, sans-serif; color: #16202a; margin: 2em auto; max-width: 60em; padding: 0 1em; }
  h1 { font-size: 1.4em; } caption { text-align: left; color: #51606e; padding: 0.4em 0; }
  table { border-collapse: collapse; width: 100%; } th, td { padding: 0.3em 0.8em 0.3em 0; border-bottom: 1px solid #c9d1d9; text-align: left; vertical-align: top; }
  .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; } tr { break-inside: avoid; }
  section { break-after: page; } section:last-child { break-after: auto; }`;

function page(month: CalendarMonth, bills: readonly SourceBill[]) {
  return html`<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Bill of ${month.name}</title><style>${STYLE}</style></head>
<body>${bills.map(({ source, dataStart, lines }) => html`<section><h1>Bill of ${month.name}, ${source}</h1>${billTable(lines, { month, dataStart })}</section>`)}</body>
</html>`;
}
