import type { Command } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { readGiven, refuseGiven } from "../../core/base/given-file.ts";
import { amountOf, amountText, roundShown } from "../../core/domain/usage/amount.ts";
import type { Database } from "../../core/store/db/database.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { csvRows } from "../../terminal/csv-rows.ts";
import { withSource } from "../../terminal/options.ts";
import { linesOf, tableOf, toTheRight } from "../../terminal/output.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { asCsv, type Cell, dayCell, decimalCell, type Table } from "../export/table-file.ts";
import { type OwnedUsage, ownedUsage } from "./charge-back.store.ts";
import {
  type ChargedLine,
  type ChargedPart,
  chargeBack,
  divisionOf,
  ledgerRows,
  PAYABLE,
} from "./charge-back.ts";
import { type ExplainedInvoice, invoiceNumbered, readExplanation } from "./explain-invoice.ts";
import type { FoundInvoice } from "./match.store.ts";
import { billedDays, keyOf } from "./match-inputs.ts";
import { monthOf, ruleOf } from "./rule.ts";

export const chargeBackExamples = [
  ["invoice charge-back INV-2026-11", "what each team pays of it"],
  ["invoice charge-back INV-2026-11 --ledger accounts.csv", "rows for the ledger"],
] as const;

export function defineChargeBack(invoice: Command): void {
  withSource(invoice.command("charge-back <number>"))
    .description(
      "divide an invoice by owner, to the cent: by usage, and other lines by the rules of `invoice rules`",
    )
    .option("--owner <owner>", "only the statement of this owner")
    .option("--csv", "CSV with a row for each line and owner", false)
    .option(
      "--ledger <file>",
      `CSV for the ledger, with the accounts of a file (columns: owner,account; owners * and ${PAYABLE})`,
    )
    .action(inSession(run));
}

interface Flags {
  readonly source?: string;
  readonly owner?: string;
  readonly csv: boolean;
  readonly ledger?: string;
}

async function run({ output, ...session }: Session, flags: Flags, number = ""): Promise<undefined> {
  const accounts = flags.ledger === undefined ? undefined : await readAccounts(flags.ledger);
  const { db } = await session.migratedStore();
  const invoice = await invoiceNumbered(db, { number, source: flags.source });
  if (invoice.status === "voided")
    throw new UsageError({
      code: "invoice_not_issued",
      message: `Invoice ${number} is voided, so nobody is charged for it.`,
      next: "Charge back the invoice that replaces it.",
    });
  const { parts, total } = await chargedParts(db, invoice);
  const { currency } = invoice;
  const own = parts.filter(({ owner }) => flags.owner === undefined || owner === flags.owner);
  if (own.length === 0 && flags.owner !== undefined)
    throw new UsageError({
      code: "owner_unknown",
      message: `Owner ${flags.owner} has no part of invoice ${number}.`,
      next: `Choose one of: ${[...new Set(parts.map(({ owner }) => owner))].join(", ")}.`,
    });
  if (accounts !== undefined) {
    process.stdout.write(asCsv(ledgerTable(invoice, parts, accounts)));
    return;
  }
  if (flags.csv) {
    process.stdout.write(asCsv(statementTable(invoice, own)));
    return;
  }
  const data = own.map(({ line, amount, ...payee }) => ({
    ...{ ...payee, lineNumber: line.lineNumber, text: line.text, amount: amountText(amount), currency },
  }));
  const sums = [
    ...Map.groupBy(own, ({ owner, costCenter }) => JSON.stringify([owner, costCenter])).values(),
  ].map((rows) => {
    const [{ owner, costCenter }] = rows as [ChargedPart];
    return { owner, costCenter, amount: rows.reduce((sum, { amount }) => sum + amount, 0n) };
  });
  output.data(data, () =>
    linesOf(
      `Invoice ${number} of ${invoice.issuer}, by owner`,
      tableOf(sums, {
        owner: "owner",
        "cost center": "costCenter",
        [`amount, ${currency}`]: toTheRight(sums, ({ amount }) => roundShown(amount, currency)),
      }),
      flags.owner === undefined && `Total: ${roundShown(total, currency)} ${currency}, that of the invoice.`,
    ),
  );
}

async function chargedParts(db: Database, invoice: FoundInvoice) {
  return inSnapshot(db, async (at) => {
    const { inputs, found } = await readExplanation(at, invoice);
    const total = amountOf(inputs.invoice.total);
    const compared = found.lines.flatMap(({ period }) => (period === null ? [] : [billedDays(period)]));
    const before = monthOf("previous_month", invoice.issuedOn);
    const periods = [...new Map(compared.map((days) => [keyOf(days), days])).values()];
    const used = await ownedUsage(at, {
      source: invoice.source,
      periods: periods.length === 0 && before !== null ? [before] : periods,
    });
    const shares = used.map(({ owner, costCenter, cost }) => ({ owner, costCenter, weight: BigInt(cost) }));
    const lines = chargedLines({ inputs, found }, used);
    return { parts: chargeBack(lines, { total, currency: invoice.currency, shares }), total };
  });
}

function chargedLines(
  { inputs, found }: Pick<ExplainedInvoice, "inputs" | "found">,
  used: readonly OwnedUsage[],
): ChargedLine[] {
  const matched = new Map(found.lines.map((line) => [line.lineNumber, line]));
  const usage = Map.groupBy(used, (one) => `${one.sku} ${keyOf(one)}`);
  return inputs.lines.map((line): ChargedLine => {
    const { sku = null, period = null, workspaceId = null } = matched.get(line.lineNumber) ?? {};
    const own =
      sku === null || period === null
        ? null
        : (usage.get(`${sku} ${keyOf(billedDays(period))}`) ?? []).filter(
            (one) => workspaceId === null || one.workspaceId === workspaceId,
          );
    const hasCost = own?.some(({ cost }) => cost !== "0");
    return {
      lineNumber: line.lineNumber,
      text: [line.sumText, line.text].filter((part) => part !== null).join(", "),
      amount: amountOf(line.amount),
      division: divisionOf(ruleOf(inputs.rules, line, inputs.invoice.issuedOn)?.divide ?? "") ?? "usage",
      weights:
        own?.map(({ owner, costCenter, cost, quantity }) => ({
          ...{ owner, costCenter, weight: BigInt(hasCost ? cost : quantity) },
        })) ?? null,
    };
  });
}

function statementTable(
  { number, issuer, issuedOn, currency }: FoundInvoice,
  parts: readonly ChargedPart[],
): Table {
  return {
    header: ["invoice", "issuer", "issued_on", "owner", "cost_center", "line", "text", "amount", "currency"],
    rows: parts.map(({ owner, costCenter, line, amount }): Cell[] => [
      ...[number, issuer, issuedOn === null ? null : dayCell(issuedOn), owner, costCenter],
      ...[line.lineNumber, line.text, decimalCell(amountText(amount)), currency],
    ]),
  };
}

function ledgerTable(
  { number, issuer, issuedOn }: FoundInvoice,
  parts: readonly ChargedPart[],
  accounts: ReadonlyMap<string, string>,
): Table {
  const rows = ledgerRows(parts, { accounts, memo: `${issuer} ${number}` });
  const cell = (amount: bigint) => (amount > 0n ? decimalCell(amountText(amount)) : null);
  return {
    header: ["date", "account", "debit", "credit", "cost_center", "memo", "id"],
    rows: rows.map(({ account, amount, costCenter, memo }, at): Cell[] => [
      ...[issuedOn === null ? null : dayCell(issuedOn), account, cell(amount), cell(-amount)],
      ...[costCenter, memo, `${number}-${at + 1}`],
    ]),
  };
}

async function readAccounts(file: string): Promise<Map<string, string>> {
  const text = await readGiven(file, "a CSV file in UTF-8, which Excel saves as CSV UTF-8");
  const rows = csvRows(file, text, {
    columns: ["owner", "account"],
    required: ["owner", "account"],
    numbers: [],
    trim: true,
  });
  const accounts = new Map(rows.map(({ cells }) => [cells.owner ?? "", cells.account ?? ""]));
  refuseGiven(file, [
    ...rows
      .filter(({ cells }) => !cells.owner || !cells.account)
      .map(({ line }) => `line ${line}: an owner and an account are needed`),
    ...(accounts.has(PAYABLE)
      ? []
      : [`there is no line for ${PAYABLE}, the account that the invoice is paid from`]),
    ...(accounts.has("*") ? [] : ["there is no line for *, the account of all other owners"]),
  ]);
  return accounts;
}
