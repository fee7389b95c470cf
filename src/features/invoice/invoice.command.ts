import { type Command, InvalidArgumentError, Option } from "commander";
import { UsageError } from "../../core/base/errors.ts";
import { readGiven } from "../../core/base/given-file.ts";
import { counted } from "../../core/base/printable.ts";
import { nearest } from "../../core/base/spelling.ts";
import { amountText } from "../../core/domain/usage/amount.ts";
import { withSource } from "../../terminal/options.ts";
import { instant, tableOf, toTheRight } from "../../terminal/output.ts";
import { commandActor, inSession, type Session } from "../../terminal/session.ts";
import { chargeBackExamples, defineChargeBack } from "./charge-back.command.ts";
import { FIELDS, type Field } from "./draft.ts";
import { defineExplain, explainExamples } from "./explain.command.ts";
import { invoiceNumbered } from "./explain-invoice.ts";
import { importInvoices, previewInvoices, refuseOpen } from "./import-invoice.ts";
import { describePreview, describeStored, invoiceData, previewData } from "./invoice-report.ts";
import { moneyShown } from "./invoice-sums.ts";
import { listInvoices, readInvoices } from "./invoices.store.ts";
import { givenFile, mappingOf } from "./read-file.ts";
import { DATE_ORDERS, type DateOrder } from "./written-date.ts";
import type { DecimalSign } from "./written-number.ts";

interface ImportFlags {
  readonly source?: string;
  readonly yes?: boolean;
  readonly replace?: boolean;
  readonly mapping?: string;
  readonly acceptDifference?: string;
  readonly acceptAccount?: boolean;
  readonly field?: Partial<Record<Field, string>>;
  readonly dateOrder?: DateOrder;
  readonly decimalSign?: DecimalSign;
}

export const examples = [
  ["invoice import invoice.pdf", "shows what it reads, and stores it after a yes"],
  ["invoice import lines.csv --mapping columns.yaml --yes", "a file with other columns"],
  ["invoice list", "what is stored"],
  ...explainExamples,
  ...chargeBackExamples,
] as const;

export function define(invoice: Command): void {
  withSource(invoice.command("import <file>"))
    .description(
      "read an invoice (PDF, CSV, XLSX, JSON, FOCUS, a copied table; - for standard input), show it, and store it",
    )
    .option("--yes", "store it without a question")
    .option("--replace", "replace the stored invoice of this number, which stays as history")
    .option(
      "--mapping <file>",
      "YAML file that names the columns of a CSV or XLSX file: `amount: Net amount`",
    )
    .option("--field <name=value>", "a field that the file does not write, such as currency=USD", fieldOf)
    .addOption(
      new Option("--date-order <order>", "order of day and month in dates such as 03/04/2026").choices(
        DATE_ORDERS,
      ),
    )
    .addOption(
      new Option("--decimal-sign <sign>", "sign before decimals, where the file does not show it").choices([
        ".",
        ",",
      ]),
    )
    .option("--accept-difference <reason>", "store an invoice whose sums do not add up")
    .option("--accept-account", "accept an account that earlier invoices do not have")
    .action(inSession(importFile));
  withSource(invoice.command("list")).description("show the stored invoices").action(inSession(list));
  withSource(invoice.command("show <number>"))
    .description("show a stored invoice beside the rows that it was read from")
    .option("--history", "also versions that were replaced")
    .action(inSession(show));
  defineExplain(invoice);
  defineChargeBack(invoice);
}

function fieldOf(text: string, before: Partial<Record<Field, string>> = {}): Partial<Record<Field, string>> {
  const [name = "", ...value] = text.split("=");
  if (!(FIELDS as readonly string[]).includes(name) || value.join("=").trim() === "") {
    const near = nearest(name, FIELDS);
    throw new InvalidArgumentError(
      near === undefined || near === name
        ? `Give NAME=VALUE with one of: ${FIELDS.join(", ")}.`
        : `Did you mean ${near}?`,
    );
  }
  return { ...before, [name]: value.join("=").trim() };
}

async function importFile(session: Session, flags: ImportFlags, name = ""): Promise<undefined> {
  const { output } = session;
  const {
    field = {},
    mapping,
    dateOrder,
    decimalSign,
    source,
    acceptAccount,
    acceptDifference,
    replace = false,
  } = flags;
  const file = await givenFile(name);
  const store = await session.migratedStore();
  const preview = await previewInvoices(store.db, file, {
    source,
    fields: field,
    dateOrder,
    decimalSign,
    acceptAccount: acceptAccount === true,
    ...(mapping === undefined
      ? {}
      : { mapping: mappingOf(mapping, await readGiven(mapping, "a YAML file")) }),
  });
  const show = (stored: boolean) => output.data(previewData(preview, stored), () => describePreview(preview));
  const isNew = preview.invoices.some(({ state }) => state !== "unchanged");
  if (flags.yes !== true || !isNew) show(!isNew);
  if (!isNew) {
    output.note("Nothing was changed.");
    return undefined;
  }
  refuseOpen(preview, { replace, acceptDifference });
  if (flags.yes !== true && !(await isAgreed(session))) {
    throw new UsageError({
      code: "invoice_unconfirmed",
      message: `${file.name} was read, and not stored.`,
      next: "Compare the figures with the file. To store them, add --yes.",
    });
  }
  const ids = await importInvoices(store, preview, { replace, acceptDifference, by: commandActor() });
  if (flags.yes === true) show(true);
  output.note(`Stored: ${counted(ids.length, "invoice")}.`);
  return undefined;
}

async function isAgreed({ output, signal }: Session): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stderr.isTTY || output.json) return false;
  const { promptsFor } = await import("../../terminal/prompts.ts");
  return /^y(es)?$/i.test(await promptsFor(signal).text("Store it? (yes/no)", "no"));
}

async function list({ output, ...session }: Session, { source }: { source?: string }): Promise<undefined> {
  const { db } = await session.migratedStore();
  const invoices = await listInvoices(db, source);
  output.data(
    invoices.map(({ subtotal, total, ...one }) => ({
      ...one,
      subtotal: subtotal && amountText(subtotal),
      total: amountText(total),
    })),
    () =>
      invoices.length === 0
        ? "No invoice is stored. `usage-etl invoice import FILE` stores one."
        : tableOf(invoices, {
            source: "source",
            number: "number",
            issuer: "issuer",
            status: "status",
            issued: ({ issuedOn }) => issuedOn ?? "",
            total: toTheRight(invoices, ({ total }) => moneyShown(total)),
            currency: "currency",
            lines: "lines",
            imported: ({ importedAt }) => instant(importedAt),
          }),
  );
}

async function show(
  { output, ...session }: Session,
  { source, history = false }: { source?: string; history?: boolean },
  number = "",
): Promise<undefined> {
  const { db } = await session.migratedStore();
  const found = await readInvoices(db, { source, number, withReplaced: history });
  if (found.length > 0)
    return output.data(found.map(invoiceData), () => found.map(describeStored).join("\n\n"));
  await invoiceNumbered(db, { number, source });
}
