import { Argument, type Command, Option } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { printable } from "../../core/base/printable.ts";
import { monthAt, monthBefore } from "../../core/domain/months/month.ts";
import { addDays, shortInstant } from "../../core/domain/time/days.ts";
import { type Amount, amountOf, amountText, percentOf, roundShown } from "../../core/domain/usage/amount.ts";
import { neverReadProblem } from "../../core/pipeline/never-read.ts";
import { type NamedWorkspace, neverRead } from "../../core/store/access/withdrawn-zeros.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { storeNow } from "../../core/store/work/fetch-ledger.ts";
import { EXIT } from "../../terminal/exit.ts";
import { withSource } from "../../terminal/options.ts";
import { linesOf, tableOf, toTheRight } from "../../terminal/output.ts";
import { commandActor, inSessionOfSource, type Session } from "../../terminal/session.ts";
import { begunMonth, sourcesToClose } from "../catalog/named.ts";
import { asCsv, BYTE_ORDER_MARK, bomOption, type Table } from "../export/table-file.ts";
import { ADDED_MEASURES, type AddedMeasure, addLine, parseAddedLine } from "./added-line.ts";
import {
  type Bill,
  type BillLine,
  billTotals,
  costsText,
  describeTotal,
  describeUnloaded,
  isIncomplete,
  lineName,
  lineState,
  roundedCosts,
  shownAmount,
  unitOf,
} from "./bill.ts";
import { billFile } from "./bill-file.ts";
import { chargesByWorkspace } from "./bill-lines.store.ts";
import { changesOfMonth, describeLoggedChanges, type ExplainedChange } from "./logged-changes.ts";
import { readMonthBill } from "./month-bill.store.ts";
import {
  type BillByOwner,
  billByOwner,
  billByOwnerTable,
  billByOwnerToData,
  describeBillByOwner,
} from "./owner-bill.ts";
import { ALSO_REPORTED, leftOut, MOST_LINES, statementName, statementValue } from "./statement.ts";

type BillBy = "line" | "workspace" | "owner";

interface BillOptions {
  readonly by?: BillBy;
  readonly csv?: boolean;
  readonly bom?: boolean;
}

interface SourceBill extends Bill {
  readonly neverRead: readonly NamedWorkspace[];
  readonly changes: readonly ExplainedChange[];
}

export const examples = [
  ["bill 2026-10", "October, line by line"],
  ["bill 2026-10 --bom > bill.csv", "the same for Excel"],
  ["bill 2026-10 --by workspace", "workspace by workspace, as an invoice has it"],
  ["bill 2026-10 --by owner", "who pays for October: traces, costs and shares"],
  ['bill add 2026-10 "Seats" 390.00 USD --reason "10 seats, invoice 4711"', "a line that no API reports"],
] as const;

export function define(command: Command): void {
  withSource(command)
    .argument("[month]", "such as 2026-10; default: the last one that is over")
    .addOption(
      new Option(
        "--by <what>",
        "line: all workspaces together (default); workspace; owner: who pays, from the owner file",
      ).choices(["line", "workspace", "owner"]),
    )
    .option("--csv", "print the lines as CSV")
    .addOption(bomOption({ csv: true }))
    .action(inSessionOfSource(run));
  withSource(command.command("add"))
    .description(
      "add a line that no API reports, such as seats or a credit; a negative amount takes one back",
    )
    .argument("<month>", "such as 2026-10")
    .argument("<text>", "what it is, as on the invoice")
    .addArgument(new Argument("<amount>", "such as 390.00"))
    .argument("<currency>", "such as USD")
    .requiredOption("--reason <text>", "why, such as the number of the invoice")
    .addOption(
      new Option("--for <measure>", "the units of deployments that the line charges").choices(ADDED_MEASURES),
    )
    .action(inSessionOfSource(add));
}

async function add(
  session: Session,
  { reason, for: measure }: { reason: string; for?: AddedMeasure },
  ...[month = "", text = "", amount = "", currency = ""]: string[]
): Promise<undefined> {
  const { output } = session;
  const store = await session.migratedStore();
  const line = parseAddedLine({ text, amount, currency, reason, measure: measure ?? null });
  const { name, start } = begunMonth(month, await storeNow(store.db));
  const [source, ...others] = await sourcesOf(session);
  if (source === undefined || others.length > 0) throw sourceRequired(others.length > 0);
  const added = await addLine(store, { ...line, ...source, monthStart: start, by: commandActor() });
  output.data(
    { source: source.source, month: name, ...added },
    () => `Added to the bill of ${name}: ${line.text}, ${costsText([{ ...line, cost: line.amount }])}.`,
  );
}

async function sourcesOf({ config, ...session }: Session) {
  const { db } = await session.migratedStore();
  return sourcesToClose(
    db,
    config.sources.map(({ slug }) => slug),
  );
}

function sourceRequired(areSeveral: boolean): UsageError {
  return new UsageError({
    code: "source_required",
    message: areSeveral
      ? "A line is on the bill of one source, and there are several."
      : "No source is stored, so there is no bill.",
    next: areSeveral ? "Name one with --source." : "Load one with `usage-etl sync` first.",
  });
}

async function run(
  session: Session,
  { by = "line", csv = false, bom = false }: BillOptions,
  text?: string,
): Promise<number> {
  const { output } = session;
  const { db } = await session.migratedStore();
  const now = await storeNow(db);
  const month = text === undefined ? monthBefore(monthAt(now)) : begunMonth(text, now);
  const sources = await sourcesOf(session);
  // With `--json`, stdout has only JSON.
  const print = (data: readonly unknown[], table: Table, describe: () => string) =>
    csv && !output.json ? printCsv(table, bom) : output.data(data, describe);
  const exitOf = (bills: readonly Bill[]) => (bills.some(isIncomplete) ? EXIT.mismatch : EXIT.done);
  if (by === "owner") {
    const bills: BillByOwner[] = [];
    for (const { source, dataStart } of sources)
      bills.push(await billByOwner(db, { source, dataStart, month, now }));
    print(
      bills.map((bill) => billByOwnerToData(month, bill)),
      billByOwnerTable(bills),
      () => bills.map((bill) => describeBillByOwner(month, bill)).join("\n\n"),
    );
    return exitOf(bills.map(({ bill }) => bill));
  }
  const bills: SourceBill[] = [];
  const unread = await neverRead(db);
  for (const { source, dataStart } of sources) {
    const bill = await inSnapshot(db, async (at) => ({
      ...(await billDivided(at, { source, dataStart, month, by })),
      changes: await changesOfMonth(at, { source, month }),
    }));
    const ofSource = unread.filter((one) => one.source === source).map(({ source: _, ...one }) => one);
    bills.push({ ...bill, neverRead: ofSource });
  }
  print(bills.map(billToData), billFile(bills), () => bills.map(describeBill).join("\n\n"));
  return exitOf(bills);
}

/** Divides each line with a charge by workspace. All other lines are not known by workspace. */
async function billDivided(
  db: Parameters<typeof readMonthBill>[0],
  { by, ...of }: Parameters<typeof readMonthBill>[1] & { readonly by: BillBy },
): Promise<Bill> {
  const bill = await readMonthBill(db, of);
  if (by !== "workspace") return bill;
  const charges = await chargesByWorkspace(db, { source: of.source, monthStart: of.month.start });
  const isWhole = ({ line, cost }: BillLine) => cost === null || line === "added";
  return { ...bill, lines: [...charges, ...bill.lines.filter(isWhole)] };
}

function billToData({ lines, month, ...bill }: SourceBill) {
  const rounded = roundedCosts(lines);
  return {
    ...bill,
    month: month.name,
    lines: lines.map((line) => {
      const cost = rounded.get(line);
      return {
        ...line,
        name: lineName(line),
        unit: unitOf(line.measure),
        roundedCost: cost === undefined ? null : amountText(cost),
        state: lineState(line),
      };
    }),
    totals: billTotals(lines).map(({ currency, cost }) => ({ currency, cost: amountText(cost) })),
    isIncomplete: isIncomplete({ ...bill, month, lines }),
  };
}

function printCsv(table: Table, bom: boolean): undefined {
  const text = `${bom ? BYTE_ORDER_MARK : ""}${asCsv(table)}`;
  process.stdout.write(process.stdout.isTTY ? printable(text) : text);
}

function describeBill(bill: SourceBill): string {
  const { source, month, lines, neverRead, unloaded, changes, alsoReported } = bill;
  const rounded = roundedCosts(lines);
  const costOf = (line: BillLine) => {
    const cost = rounded.get(line);
    return cost === undefined || line.currency === null
      ? null
      : `${roundShown(cost, line.currency)} ${line.currency}`;
  };
  return linesOf(
    `Bill of ${month.name}, ${source}: an estimate from the imported prices, not an invoice`,
    describeHead(bill),
    lines.length > 0 &&
      tableOf(lines, {
        workspace:
          lines.some(({ workspaceId }) => workspaceId !== null) &&
          (({ workspaceId, workspaceName }) => workspaceName ?? workspaceId),
        what: lineName,
        SKU: ({ line, sku }) => (line === "unpriced" ? null : sku),
        quantity: toTheRight(lines, ({ quantity, measure }) =>
          quantity === null ? "-" : `${shownAmount(quantity)} ${unitOf(measure)}`,
        ),
        "unit price": ({ unitPrice }) => shownAmount(unitPrice),
        cost: toTheRight(lines, (line) => costOf(line) ?? "-"),
        state: lineState,
      }),
    ...workspaceSums(lines, rounded),
    describeTotal(bill),
    describeBeside(bill),
    bill.closed === null && neverReadProblem(neverRead)?.message,
    describeUnloaded(unloaded),
    describeLoggedChanges(changes),
    bill.closed !== null &&
      "The month is closed. Later changes of counts or prices are corrections in the bill of the first open month after it.",
    billTotals(lines).length === 0 &&
      lines.some(({ line }) => line === "unpriced") &&
      "Import prices with `usage-etl prices import FILE`.",
    alsoReported.length > 0 && [
      `${ALSO_REPORTED}:`,
      tableOf(alsoReported.slice(0, MOST_LINES), {
        what: statementName,
        value: statementValue,
        read: "takenOn",
        "does not say": "doesNotSay",
      }),
      alsoReported.length > MOST_LINES && leftOut(alsoReported),
    ],
  );
}

function describeHead({ organization, month, asOf, closed }: Bill): string {
  const of = organization === null ? "" : `Organization ${organization}. `;
  const by = closed?.by == null ? "" : ` by ${closed.by}`;
  const state = closed === null ? "" : `, closed ${shortInstant(closed.at)}${by}`;
  return `${of}${month.start} to ${addDays(month.end, -1)} (UTC), as of ${shortInstant(asOf)}${state}.`;
}

/** Sums the rounded lines of each workspace that has several. */
function workspaceSums(lines: readonly BillLine[], rounded: ReadonlyMap<BillLine, Amount>): string[] {
  const charged = lines.filter((line) => line.workspaceId !== null && rounded.has(line));
  const sums = [
    ...Map.groupBy(charged, ({ workspaceId, currency }) => JSON.stringify([workspaceId, currency])).values(),
  ];
  if (sums.every((some) => some.length === 1)) return [];
  const shown = tableOf(sums, {
    workspace: ([first]: BillLine[]) => first?.workspaceName ?? first?.workspaceId ?? null,
    "sum of its lines": toTheRight(sums, (some) => {
      const sum = some.reduce((all, line) => all + (rounded.get(line) ?? 0n), 0n);
      const currency = some[0]?.currency ?? "";
      return `${roundShown(sum, currency)} ${currency}`;
    }),
  });
  return ["", shown, ""];
}

function describeBeside({ lines, before, budgets }: Bill): string | false {
  const totals = new Map(billTotals(lines).map(({ currency, cost }) => [currency, cost]));
  const used = budgets.map(({ currency, cost }) => {
    const percent = percentOf(totals.get(currency) ?? 0n, amountOf(cost));
    return `Budget: ${costsText([{ currency, cost }])}, of which ${percent ?? 0} % is used.`;
  });
  const previous = before.length > 0 && `Previous month: ${costsText(before)}.`;
  const said = [previous, ...used].filter((one) => one !== false);
  return said.length > 0 && said.join(" ");
}
