import { refuseGiven } from "../../core/base/given-file.ts";
import { type Amount, minorDigits } from "../../core/domain/usage/amount.ts";
import { type Draft, type DraftLine, type Drafts, FIELDS, type Field, TIER, type Written } from "./draft.ts";
import {
  INVOICE_STATUSES,
  type Invoice,
  type InvoiceLine,
  type InvoiceStatus,
  LINE_KINDS,
  type LineKind,
} from "./invoice.ts";
import { differencesOf, sumDifference, totalOf } from "./invoice-sums.ts";
import {
  type DateOrder,
  dateIn,
  endOf,
  orderAmong,
  periodIn,
  type WrittenDate,
  type WrittenPeriod,
} from "./written-date.ts";
import { amountIn, currencyAmong, type DecimalSign, isEither, moneyIn, signAmong } from "./written-number.ts";

/** What a person says about a file that does not say it itself. */
export interface Told {
  readonly fields: Partial<Record<Field, string>>;
  readonly dateOrder?: DateOrder | undefined;
  readonly decimalSign?: DecimalSign | undefined;
  /** Used where the file names no issuer. */
  readonly likelyIssuer?: string | undefined;
}

interface ReadField {
  readonly field: Field;
  readonly value: string;
  readonly place: string;
  readonly row: string;
}

/** An invoice as it was read, beside the texts that it was read from. */
export interface Reading {
  readonly invoice: Invoice;
  readonly fields: readonly ReadField[];
  /** Sums that do not add up. */
  readonly differences: readonly string[];
  readonly notes: readonly string[];
}

interface File {
  readonly currency: string;
  readonly order: DateOrder | undefined;
  readonly sign: DecimalSign | undefined;
  readonly problems: string[];
}

const TOLD_PLACE = "--field";

/** Reads all texts of a file, or refuses it whole. Error: `file_invalid`, with the place of every problem. */
export function finishInvoices(file: string, { drafts, decimalSign }: Drafts, told: Told): Reading[] {
  const problems: string[] = [];
  const numbers = drafts.flatMap((draft) =>
    numbersOf(draft).flatMap(({ text, place }) => {
      const money = moneyIn(text);
      return money === undefined ? [] : [{ number: money.number, place }];
    }),
  );
  const given = told.decimalSign ?? (decimalSign?.isSure === true ? decimalSign.sign : undefined);
  const seen = given === undefined ? signAmong(numbers) : { sign: given };
  if (typeof seen === "string") problems.push(seen);
  const sign = typeof seen === "string" ? undefined : (seen.sign ?? likelySign(numbers, decimalSign?.sign));
  const ordered =
    told.dateOrder === undefined ? orderAmong(drafts.flatMap(datesOf)) : { order: told.dateOrder };
  if (typeof ordered === "string") problems.push(ordered);
  const order = typeof ordered === "string" ? undefined : ordered.order;
  if (drafts.length === 0) problems.push("it has no invoice");
  const readings = drafts.map((draft) => {
    const marked = currencyOf(draft, told);
    if ("why" in marked) problems.push(marked.why);
    const currency = "why" in marked ? "USD" : marked.currency;
    return finishInvoice(draft, told, { currency, order, sign, problems });
  });
  refuseGiven(file, [...new Set(problems)]);
  return readings;
}

/** A point separates decimals in a file that separates its cells by commas, if a number has one. */
function likelySign(numbers: readonly { number: string }[], likely: DecimalSign | undefined) {
  const isPossible =
    likely === "." && numbers.every(({ number }) => !isEither(number) || number.includes("."));
  return isPossible ? likely : undefined;
}

interface Placed {
  readonly text: string;
  readonly place: string;
}

function numbersOf({ lines, subtotal, total, sums = [] }: Draft): Placed[] {
  const ofLines = lines.flatMap(({ place, quantity, unitPrice, amount }) =>
    [quantity, unitPrice, amount].flatMap((text) => (text === undefined ? [] : [{ text, place }])),
  );
  return [
    ...ofLines,
    ...[subtotal, total, ...sums.map(({ written }) => written)].flatMap((one) => one ?? []),
  ];
}

function datesOf({ fields, lines, period }: Draft): { date: WrittenDate; text: string; place: string }[] {
  const single = [fields.issued_on, fields.due_on].flatMap((one) => {
    const date = one && dateIn(one.text);
    return one && date ? [{ date, text: one.text, place: one.place }] : [];
  });
  const periods = [period && { period: period.text, place: period.place }, ...lines].flatMap((one) => {
    const read = one && writtenPeriod(one.period);
    if (one === undefined || read === undefined) return [];
    const text = typeof one.period === "string" ? one.period : `${one.period?.start} to ${one.period?.end}`;
    return [read.start, read.end].map((date) => ({ date, text, place: one.place }));
  });
  return [...single, ...periods];
}

function writtenPeriod(period: DraftLine["period"]): WrittenPeriod | undefined {
  if (period === undefined) return undefined;
  if (typeof period === "string") return periodIn(period);
  const [start, end] = [dateIn(period.start), dateIn(period.end)];
  return start === undefined || end === undefined ? undefined : { start, end, isEndIncluded: false };
}

function currencyOf(draft: Draft, told: Told): { currency: string } | { why: string } {
  const inAmounts = numbersOf(draft).flatMap(({ text, place }) => {
    const mark = moneyIn(text)?.currency;
    return mark === undefined ? [] : [{ mark, place }];
  });
  const { currency } = draft.fields;
  const marks = [
    ...(currency === undefined ? [] : [{ mark: currency.text.toUpperCase(), place: currency.place }]),
    ...(told.fields.currency === undefined ? [] : [{ mark: told.fields.currency, place: TOLD_PLACE }]),
    ...(draft.marks ?? []),
    ...inAmounts,
  ];
  const found = currencyAmong(marks);
  return typeof found === "string" ? { why: found } : found;
}

function finishInvoice(draft: Draft, told: Told, file: File): Reading {
  const { currency, problems } = file;
  const fields = { ...draft.fields };
  for (const field of FIELDS) {
    const text = told.fields[field];
    if (text === undefined) continue;
    const written = fields[field];
    if (written !== undefined && written.text !== text && field !== "currency") {
      problems.push(
        `${written.place}: ${field} is ${JSON.stringify(written.text)}, and --field gives ${JSON.stringify(text)}`,
      );
    }
    fields[field] ??= { text, place: TOLD_PLACE, row: text };
  }
  if (fields.issuer === undefined && told.likelyIssuer !== undefined) {
    fields.issuer = { text: told.likelyIssuer, place: "the configuration", row: told.likelyIssuer };
  }
  const text = (field: Field) => fields[field]?.text ?? null;
  for (const field of ["issuer", "number"] as const) {
    if (text(field) === null) problems.push(`no ${field} is written. Give it, such as --field ${field}=...`);
  }
  const lines = finishLines(draft, file);
  const money = (written: Written | undefined) => {
    if (written === undefined) return null;
    const amount = amountOf(written.text, written.place, file, true);
    const unit = 10n ** BigInt(10 - minorDigits(currency));
    if (amount % unit !== 0n) {
      problems.push(`${written.place}: ${JSON.stringify(written.text)} has more decimals than ${currency}`);
    }
    return amount;
  };
  const [subtotal, total] = [money(draft.subtotal), money(draft.total)];
  const credited = draft.isCreditNote === true && (total ?? 0n) > 0n;
  const signed = (amount: Amount) => (credited ? -amount : amount);
  const number = text("number") ?? "";
  const corrects = text("corrects");
  const invoice: Invoice = {
    issuer: text("issuer") ?? "",
    number,
    status: statusOf(fields.status, problems),
    issuedOn: dayOf(fields.issued_on, file),
    dueOn: dayOf(fields.due_on, file),
    terms: text("terms"),
    account: text("account"),
    purchaseOrder: text("purchase_order"),
    currency,
    corrects: corrects === number ? null : corrects,
    lines: lines.map((line) => ({ ...line, amount: signed(line.amount) })),
    subtotal: subtotal === null ? null : signed(subtotal),
    total: signed(total ?? totalOf(lines)),
  };
  if (lines.length === 0) problems.push("it has no lines");
  const partial = (draft.sums ?? []).flatMap(({ written, from, to }) => {
    return sumDifference(
      `${written.place}, ${JSON.stringify(written.row)}`,
      money(written) ?? 0n,
      totalOf(lines.slice(from, to)),
    );
  });
  return {
    invoice,
    fields: FIELDS.flatMap((field) => {
      const one = fields[field];
      const value = invoice[KEY_OF[field]] ?? "";
      return one === undefined ? [] : [{ field, value, place: one.place, row: one.row }];
    }),
    differences: [...partial, ...differencesOf(invoice, draft)],
    notes: [
      ...(total === null ? ["It writes no total: the total is the sum of its lines."] : []),
      ...(credited ? ["It is a credit note, so its amounts are stored with a minus."] : []),
    ],
  };
}

const KEY_OF = {
  issuer: "issuer",
  number: "number",
  status: "status",
  issued_on: "issuedOn",
  due_on: "dueOn",
  terms: "terms",
  account: "account",
  purchase_order: "purchaseOrder",
  currency: "currency",
  corrects: "corrects",
} as const satisfies Record<Field, keyof Invoice>;

const STATUS_WORDS: Readonly<Record<string, InvoiceStatus>> = {
  ...Object.fromEntries(INVOICE_STATUSES.map((status) => [status, status])),
  draft: "open",
  void: "voided",
  paid: "issued",
  finalized: "issued",
};

function statusOf(written: Written | undefined, problems: string[]): InvoiceStatus {
  if (written === undefined) return "issued";
  const status = STATUS_WORDS[written.text.toLowerCase()];
  if (status === undefined) {
    problems.push(
      `${written.place}: the status ${JSON.stringify(written.text)} is not one of ${INVOICE_STATUSES.join(", ")}`,
    );
  }
  return status ?? "issued";
}

function finishLines(draft: Draft, file: File): InvoiceLine[] {
  const { problems } = file;
  const lines: InvoiceLine[] = [];
  let above = -1;
  draft.lines.forEach((one, at) => {
    const isPart = one.isPart || TIER.test(one.text);
    if (!isPart) above = at;
    const sum = isPart ? lines[above] : undefined;
    if (isPart && sum === undefined)
      problems.push(`${one.place}: ${JSON.stringify(one.text)} is a part, and no line is above it`);
    if (one.text === "") problems.push(`${one.place}: a line without a text`);
    const quantity = optionalAmount(one.quantity, one.place, file);
    const unitPrice = optionalAmount(one.unitPrice, one.place, file);
    const hasParts = draft.lines[at + 1]?.isPart === true || TIER.test(draft.lines[at + 1]?.text ?? "");
    const isUsage = quantity !== null || unitPrice !== null || (!isPart && hasParts);
    const kind = kindOf(one, isUsage, problems);
    lines.push({
      text: one.text,
      isSum: !isPart && hasParts,
      partOf: isPart ? above : null,
      kind: one.kind === undefined ? (sum?.kind ?? kind) : kind,
      quantity,
      unit: one.unit ?? sum?.unit ?? null,
      unitPrice,
      amount: amountOf(one.amount, one.place, file, true),
      ...periodOf(one, draft.period, sum, file),
      workspace: one.workspace ?? sum?.workspace ?? null,
      place: one.place,
      sourceText: one.row,
    });
  });
  return lines;
}

const KIND_WORDS: readonly (readonly [LineKind, RegExp])[] = [
  ["tax", /\b(?:tax|vat|gst|hst|mwst|ust)\b/i],
  ["drawdown", /\bdraw ?down\b/i],
  ["commitment", /\bcommit(?:ment|ted)?\b|\bprepaid\b/i],
  ["discount", /\b(?:discount|coupon|promotion)\b/i],
  ["credit", /\bcredits?\b/i],
  ["adjustment", /\b(?:adjustment|rounding|correction)\b/i],
  ["seat", /\b(?:seats?|licen[cs]es?)\b/i],
];

function kindOf({ kind, text, place }: DraftLine, isUsage: boolean, problems: string[]): LineKind {
  if (kind === undefined) {
    return KIND_WORDS.find(([, words]) => words.test(text))?.[0] ?? (isUsage ? "usage" : "adjustment");
  }
  const known = LINE_KINDS.find((one) => one === kind.toLowerCase());
  if (known === undefined)
    problems.push(`${place}: the kind ${JSON.stringify(kind)} is not one of ${LINE_KINDS.join(", ")}`);
  return known ?? "adjustment";
}

function periodOf(
  one: DraftLine,
  ofInvoice: Written | undefined,
  sum: InvoiceLine | undefined,
  file: File,
): Pick<InvoiceLine, "periodStart" | "periodEnd"> {
  const given = one.period ?? (sum?.periodStart ? undefined : ofInvoice?.text);
  if (given === undefined)
    return { periodStart: sum?.periodStart ?? null, periodEnd: sum?.periodEnd ?? null };
  const shown = typeof given === "string" ? given : `${given.start} to ${given.end}`;
  const place = one.period === undefined ? (ofInvoice?.place ?? one.place) : one.place;
  const period = writtenPeriod(given);
  if (period === undefined) {
    file.problems.push(`${place}: ${JSON.stringify(shown)} is not a period such as 2026-10-01 to 2026-10-31`);
    return { periodStart: null, periodEnd: null };
  }
  const [start, end] = [period.start, period.end].map((date) => chosen(date, shown, place, file));
  if (start === undefined || end === undefined) return { periodStart: null, periodEnd: null };
  const periodEnd = endOf(start, end, period.isEndIncluded);
  if (start >= periodEnd)
    file.problems.push(`${place}: the period ${JSON.stringify(shown)} ends before it starts`);
  return { periodStart: start, periodEnd };
}

function dayOf(written: Written | undefined, file: File): string | null {
  if (written === undefined) return null;
  // Of an instant, an invoice means its day.
  const date = dateIn(written.text.replace(/T.*$/, ""));
  if (date !== undefined) return chosen(date, written.text, written.place, file) ?? null;
  file.problems.push(`${written.place}: ${JSON.stringify(written.text)} is not a date such as 2026-10-31`);
  return null;
}

function chosen(
  date: WrittenDate,
  text: string,
  place: string,
  { order, problems }: File,
): string | undefined {
  if (order !== undefined && date[order] !== undefined) return date[order];
  if (date.dmy === date.mdy) return date.dmy;
  if (order !== undefined)
    problems.push(`${place}: ${JSON.stringify(text)} is no date in the order ${order}`);
  else if (date.dmy === undefined || date.mdy === undefined) return date.dmy ?? date.mdy;
  else
    problems.push(
      `${place}: ${JSON.stringify(text)} may be ${date.dmy} or ${date.mdy}. Say which with --date-order dmy or mdy`,
    );
  return undefined;
}

function optionalAmount(text: string | undefined, place: string, file: File): Amount | null {
  return text === undefined || text === "" ? null : amountOf(text, place, file, false);
}

function amountOf(text: string, place: string, file: File, isMoney: boolean): Amount {
  const refuse = (why: string) => {
    file.problems.push(`${place}: ${JSON.stringify(text)} ${why}`);
    return 0n;
  };
  const money = moneyIn(text);
  if (money === undefined) return refuse(text === "" ? "is no amount" : "is not a number");
  const { number } = money;
  // Yen have no decimals, so what looks like one separates thousands.
  const without =
    isMoney && minorDigits(file.currency) === 0 ? (number.includes(",") ? "." : ",") : undefined;
  const sign = isEither(number) ? (file.sign ?? without) : (file.sign ?? signOf(number));
  if (sign === undefined)
    return refuse("may be more than a thousand or less. Say which with --decimal-sign . or ,");
  const amount = amountIn(number, sign);
  return typeof amount === "string" ? refuse(amount) : amount;
}

/** Without a sign in the file, a number that is not ambiguous is whole. */
function signOf(number: string): DecimalSign {
  const shown = signAmong([{ number, place: "" }]);
  return (typeof shown === "string" ? undefined : shown.sign) ?? ".";
}
