import { writeFile } from "node:fs/promises";
import type { Command } from "commander";
import { readGiven, refuseGiven } from "../../core/base/given-file.ts";
import { counted } from "../../core/base/printable.ts";
import { roundShown } from "../../core/domain/usage/amount.ts";
import { csvRows } from "../../terminal/csv-rows.ts";
import { withSource } from "../../terminal/options.ts";
import { linesOf, tableOf, toTheRight } from "../../terminal/output.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { asCsv } from "../export/table-file.ts";
import { asWorkbook } from "../export/workbook-file.ts";
import { ledgerTable, PAYABLE, readStatement, statementTable, sumsByOwner } from "./charge-back.ts";
import { explainInvoice, invoiceNumbered } from "./explain-invoice.ts";

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
    .option("--xlsx <file>", "the same as a workbook")
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
  readonly xlsx?: string;
  readonly ledger?: string;
}

async function run({ output, ...session }: Session, flags: Flags, number = ""): Promise<undefined> {
  const accounts = flags.ledger === undefined ? undefined : await readAccounts(flags.ledger);
  const store = await session.migratedStore();
  const invoice = await invoiceNumbered(store.db, { number, source: flags.source });
  await explainInvoice(store, invoice);
  const parts = await readStatement(store.db, invoice, flags);
  const { currency } = invoice;
  if (accounts !== undefined) process.stdout.write(asCsv(ledgerTable(invoice, parts, accounts)));
  else if (flags.csv) process.stdout.write(asCsv(statementTable(invoice, parts)));
  else if (flags.xlsx !== undefined) {
    const file = await asWorkbook([{ sheet: "Statement", table: statementTable(invoice, parts) }]);
    await writeFile(flags.xlsx, file);
    output.note(`${flags.xlsx}: ${counted(parts.length, "row")}.`);
  } else {
    const sums = sumsByOwner(parts);
    const total = sums.reduce((sum, { amount }) => sum + amount, 0n);
    output.data(
      parts.map((part) => ({ ...part, currency })),
      () =>
        linesOf(
          `Invoice ${number} of ${invoice.issuer}, by owner`,
          tableOf(sums, {
            owner: "owner",
            "cost center": "costCenter",
            [`amount, ${currency}`]: toTheRight(sums, ({ amount }) => roundShown(amount, currency)),
          }),
          flags.owner === undefined &&
            `Total: ${roundShown(total, currency)} ${currency}, that of the invoice.`,
        ),
    );
  }
  return undefined;
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
