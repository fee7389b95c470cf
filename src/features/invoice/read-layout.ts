import { refuseGiven } from "../../core/base/given-file.ts";
import { type Draft, type DraftLine, type Drafts, type Field, TIER, type Written } from "./draft.ts";
import { rowText, type TextCell, type TextRow } from "./text-row.ts";
import { dateIn, periodIn } from "./written-date.ts";
import { CURRENCIES, moneyIn } from "./written-number.ts";

/**
 * Reads an invoice of a PDF or a copied table: labels with their values, a head of columns, lines below it, and sums. Each row
 * from the head to the total must be one that is known, so that no charge is left out. The issuer's real PDF was never seen: the
 * words are those of a published picture and of common invoice programs.
 */

type Column = "text" | "quantity" | "unit" | "unitPrice" | "amount" | "period" | "workspace" | "ignored";

const HEADS: readonly (readonly [Column, RegExp])[] = [
  ["text", /^(?:description|item|product|service|details?|charge|line item|metric|name)s?$/i],
  ["quantity", /^(?:qty|quantity|usage|count|units used)$/i],
  ["unit", /^(?:unit|uom|unit of measure)$/i],
  ["unitPrice", /^(?:unit price|price|rate|unit cost|price per unit|unit amount)$/i],
  ["amount", /^(?:amount|total|line total|cost|subtotal)$/i],
  ["period", /^(?:period|service period|billing period|date range|dates)$/i],
  ["workspace", /^(?:workspace|tenant)(?:[ _]id)?$/i],
  ["ignored", /^(?:tax|tax rate|vat|vat rate|#|no\.?|pos\.?)$/i],
];

/** A customer below `Bill to` is the account where no other row names one. */
type Label = Field | "period" | "billTo";

const LABELS: readonly (readonly [Label, RegExp])[] = [
  ["number", /^(?:invoice|credit note) ?(?:number|no\.?|nr\.?|id|#)$/i],
  ["issued_on", /^(?:date of issue|issue date|invoice date|date issued|issued(?: on)?|date)$/i],
  ["due_on", /^(?:date due|due date|due(?: on)?|payment due(?: date)?|pay by)$/i],
  ["terms", /^(?:payment )?terms$/i],
  [
    "account",
    /^(?:(?:billing |customer )?account(?: id| number)?|customer(?: id)?|organi[sz]ation(?: id)?)$/i,
  ],
  ["billTo", /^bill(?:ed)? to$/i],
  ["purchase_order", /^(?:po|p\.o\.|purchase order)(?: number| no\.?| #)?$/i],
  ["currency", /^currency$/i],
  ["status", /^status$/i],
  ["issuer", /^(?:issuer|issued by|seller|vendor|supplier)$/i],
  [
    "corrects",
    /^(?:original invoice|corrects invoice|corrected invoice|credit for invoice)(?: number| no\.?)?$/i,
  ],
  ["period", /^(?:billing|service|invoice) period$/i],
];

const SUBTOTAL = /^(?:sub-?total|total (?:excluding|before|excl\.?) (?:tax|vat)|net total)$/i;
const TOTAL =
  /^(?:invoice |grand |credit )?total(?: amount)?(?: due)?(?: (?:including|incl\.?) (?:tax|vat))?$/i;
/** How the total is paid. The last is the total where no row says so. */
const PAYMENT = /^(?:amount (?:paid|remaining)|applied balance|payments?|paid(?: on .*)?|credit applied)$/i;
const DUE = /^(?:amount due|balance due)$/i;
const WORKSPACE =
  /^(?:workspace|tenant)(?:[ _]id)?(?: name)?\s*[:=#]?\s+(.+)$|^(?:workspace|tenant)(?:[ _]id)?[:=](.+)$/i;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;
const PAGE_NUMBER = /\bpage \d+ (?:of|\/) \d+\b/i;
const RECEIPT = /^(?:payment )?receipt(?: (?:number|no\.?|#).*)?$/i;
/** Of these kinds of lines alone, a heading says the workspace. */
const OF_NO_WORKSPACE = /\b(?:tax|vat|seats?|credits?|discount|commit\w*|adjustment|rounding)\b/i;

/** Points between the beginnings of two lines of one text. */
const SAME_PLACE = 2;

interface Head {
  readonly columns: readonly { readonly column: Column; readonly cell: TextCell }[];
}

interface State {
  head: Head | undefined;
  /** After the subtotal a row needs no text below the head of texts. */
  isSummed: boolean;
  isTotal: boolean;
  heading: string | undefined;
  workspace: { name: string; sum: { written: Written; from: number } | undefined } | undefined;
  period: string | undefined;
  /** Undefined: no period was a row of its own yet. */
  periodsComeFirst: boolean | undefined;
}

export function readLayout(file: string, rows: readonly TextRow[], workspaces: readonly string[]): Drafts {
  return { drafts: [new LayoutReader(joined(rows), workspaces).read(file)] };
}

class LayoutReader {
  readonly #rows: readonly TextRow[];
  readonly #workspaces: ReadonlySet<string>;
  readonly #problems: string[] = [];
  readonly #fields: Partial<Record<Field, Written>> = {};
  readonly #lines: DraftLine[] = [];
  readonly #sums: { written: Written; from: number; to: number }[] = [];
  #subtotal: { readonly written: Written; readonly after: number } | undefined;
  #total: Written | undefined;
  #due: Written | undefined;
  #period: Written | undefined;
  #billTo: Written | undefined;
  #isCreditNote = false;
  readonly #state: State = {
    head: undefined,
    isSummed: false,
    isTotal: false,
    heading: undefined,
    workspace: undefined,
    period: undefined,
    periodsComeFirst: undefined,
  };

  constructor(rows: readonly TextRow[], workspaces: readonly string[]) {
    this.#rows = rows;
    this.#workspaces = new Set(workspaces.map((name) => name.toLowerCase()));
  }

  read(file: string): Draft {
    this.#rows.forEach((row, at) => {
      const head = headOf(row);
      if (head !== undefined) this.#beginTable(row, head);
      else if (this.#state.head === undefined || this.#state.isTotal) this.#readOutside(row, at);
      else this.#readInside(row, at);
    });
    this.#endWorkspace();
    this.#refuseUnread();
    refuseGiven(file, this.#problems);
    const isBeforeTax =
      this.#subtotal !== undefined &&
      this.#lines.slice(this.#subtotal.after).every(({ text }) => /\b(?:tax|vat)\b/i.test(text));
    return {
      fields: this.#billTo === undefined ? this.#fields : { account: this.#billTo, ...this.#fields },
      lines: this.#lines,
      subtotal: isBeforeTax ? this.#subtotal?.written : undefined,
      total: this.#total ?? this.#due,
      sums: this.#sums,
      marks: this.#rows.flatMap(marksIn),
      period: this.#period,
      isCreditNote: this.#isCreditNote,
    };
  }

  #refuseUnread(): void {
    const { head } = this.#state;
    if (head === undefined) {
      this.#problems.push(
        "no row has the heads of a table, such as Description and Amount. Copy a table with its heads; a CSV file has our columns, or needs --mapping",
      );
    } else if (this.#total === undefined && this.#due === undefined) {
      this.#problems.push("no row has the total, so lines may be missing");
    }
  }

  #beginTable({ place }: TextRow, head: Head): void {
    if (this.#state.isTotal) this.#problems.push(`${place}: a second table begins after the total`);
    this.#state.head = head;
  }

  #readOutside(row: TextRow, at: number): void {
    const text = rowText(row);
    if (row.cells.some((cell) => RECEIPT.test(cell.text))) {
      this.#problems.push(
        `${row.place}: it is a receipt (${JSON.stringify(text)}). Import the invoice that it paid`,
      );
    }
    if (row.cells.some((cell) => /^credit note$/i.test(cell.text))) this.#isCreditNote = true;
    const state = row.cells.find((cell) => /^(?:draft|void|voided)$/i.test(cell.text));
    if (state !== undefined) this.#setField("status", { text: state.text, place: row.place, row: text });
    for (const [n, cell] of row.cells.entries()) this.#readLabel(row, { cell, next: row.cells[n + 1], at });
    const sum = this.#state.isTotal ? sumIn(row) : undefined;
    if (sum === undefined) return;
    if (DUE.test(sum.label)) this.#due ??= sum.written;
    else if (!PAYMENT.test(sum.label) && sum.isMoney && !PAGE_NUMBER.test(text)) {
      this.#problems.push(`${row.place}: ${JSON.stringify(text)} is an amount after the total`);
    }
  }

  /** The value is after a colon, in the next cell, or below. */
  #readLabel(
    row: TextRow,
    { cell, next, at }: { cell: TextCell; next: TextCell | undefined; at: number },
  ): void {
    const [, before = "", after = ""] = /^([^:]+?)\s*:\s*(.*)$/.exec(cell.text) ?? [];
    const [, spaced = "", value = ""] =
      /^(invoice number|date of issue|date due|due date|invoice date) (\S.*)$/i.exec(cell.text) ?? [];
    const label = before || spaced || cell.text;
    const field = LABELS.find(([, words]) => words.test(label.trim()))?.[0];
    if (field === undefined) return;
    const beside = next !== undefined && !isLabel(next.text) ? next.text : undefined;
    const below = this.#rows[at + 1];
    const under = below?.cells.find(
      ({ from, to }) => from < cell.to && to > cell.from && Math.abs(from - cell.from) < cell.to - cell.from,
    );
    const text = after || value || beside || (under && !isLabel(under.text) ? under.text : undefined);
    if (text === undefined) return;
    const source = after || value || beside ? rowText(row) : `${cell.text} / ${text}`;
    this.#setField(field, { text, place: row.place, row: source });
  }

  #setField(field: Label, written: Written): void {
    if (field === "period") this.#period ??= written;
    else if (field === "billTo") this.#billTo ??= written;
    else this.#setOwn(field, written);
  }

  #setOwn(field: Field, written: Written): void {
    const known = this.#fields[field];
    if (known !== undefined && known.text !== written.text) {
      this.#problems.push(
        `${written.place}: ${field} is ${JSON.stringify(written.text)}, and ${JSON.stringify(known.text)} in ${known.place}`,
      );
    }
    this.#fields[field] ??= written;
  }

  #readInside(row: TextRow, at: number): void {
    const text = rowText(row);
    if (PAGE_NUMBER.test(text)) return;
    const sum = sumIn(row);
    if (sum !== undefined && this.#readSum(sum)) return;
    if (this.#readPeriod(text) || this.#readWorkspace(row)) return;
    const values = this.#valuesIn(row);
    if (values === undefined) return;
    const isAlone = Object.keys(values).join() === "text";
    if (values.amount !== undefined) this.#addLine(row, values);
    else if (isAlone && TIER.test(rowText(this.#rows[at + 1] ?? { cells: [] }))) {
      this.#state.heading = text;
    } else {
      const about = isAlone ? " If it names a workspace, write it as `Workspace: NAME`" : "";
      this.#problems.push(
        `${row.place}: ${JSON.stringify(text)} is no line with an amount, and no heading that is known.${about}`,
      );
    }
  }

  /** Returns whether the row is a sum of lines above it. */
  #readSum({ label, written }: Sum): boolean {
    const { length } = this.#lines;
    if (SUBTOTAL.test(label)) {
      this.#endWorkspace();
      this.#sums.push({ written, from: 0, to: length });
      this.#subtotal = { written, after: length };
      this.#state.isSummed = true;
      this.#state.workspace = undefined;
    } else if (TOTAL.test(label) || DUE.test(label)) {
      this.#endWorkspace();
      this.#total = written;
      this.#state.isTotal = true;
    } else return false;
    return true;
  }

  /** Periods are above the lines of theirs in one layout, and below the line in another: the first one shows which. */
  #readPeriod(text: string): boolean {
    if (periodIn(text) === undefined) return false;
    this.#state.periodsComeFirst ??= this.#lines.length === 0;
    if (this.#state.periodsComeFirst) {
      this.#state.period = text;
      return true;
    }
    // Of a sum row and its tiers the sum has the period.
    const at = this.#lines.findLastIndex(({ isPart, text: line }) => !isPart && !TIER.test(line));
    const line = this.#lines[at];
    if (line !== undefined) this.#lines[at] = { ...line, period: text };
    return true;
  }

  #readWorkspace(row: TextRow): boolean {
    const last = row.cells.at(-1);
    const money = row.cells.length > 1 && last !== undefined ? moneyIn(last.text) : undefined;
    const text = rowText({ cells: money === undefined ? row.cells : row.cells.slice(0, -1) });
    const [, spaced, marked] = WORKSPACE.exec(text) ?? [];
    const name = (
      spaced ??
      marked ??
      (UUID.test(text) || this.#workspaces.has(text.toLowerCase()) ? text : "")
    )?.trim();
    if (!name) return false;
    this.#endWorkspace();
    const written = { text: last?.text ?? "", place: row.place, row: rowText(row) };
    this.#state.workspace = { name, sum: money && { written, from: this.#lines.length } };
    return true;
  }

  /** A heading with an amount is the sum of its lines. */
  #endWorkspace(): void {
    const sum = this.#state.workspace?.sum;
    if (sum !== undefined) this.#sums.push({ ...sum, to: this.#lines.length });
    if (this.#state.workspace !== undefined) this.#state.workspace.sum = undefined;
  }

  /** The texts of a row by column. Undefined: it is a problem, which was noted. */
  #valuesIn(row: TextRow): Partial<Record<Column, string>> | undefined {
    const values: Partial<Record<Column, string>> = {};
    const last = row.cells.at(-1);
    if (this.#state.isSummed && last !== undefined && row.cells.length > 1) {
      return { text: rowText({ cells: row.cells.slice(0, -1) }), amount: last.text };
    }
    for (const cell of row.cells) {
      const column = columnOf(cell, this.#state.head as Head);
      if (column === "text" && values.text !== undefined) values.text += ` ${cell.text}`;
      else if (values[column] === undefined) values[column] = cell.text;
      else {
        this.#problems.push(
          `${row.place}: ${JSON.stringify(values[column])} and ${JSON.stringify(cell.text)} are in one column`,
        );
        return undefined;
      }
    }
    return values;
  }

  #addLine(row: TextRow, values: Partial<Record<Column, string>>): void {
    const { heading, workspace, period } = this.#state;
    const { text = "", quantity, unit, unitPrice, amount = "" } = values;
    const isPart = TIER.test(text) && heading === undefined && this.#lines.length > 0;
    if (!TIER.test(text)) this.#state.heading = undefined;
    const isOfWorkspace = !OF_NO_WORKSPACE.test(text) && !this.#state.isSummed;
    this.#lines.push({
      place: row.place,
      row: rowText(row),
      text: heading !== undefined && TIER.test(text) ? `${heading}: ${text}` : text,
      quantity,
      unit,
      unitPrice,
      amount,
      period: values.period ?? (this.#state.isSummed ? undefined : period),
      workspace: values.workspace ?? (isOfWorkspace ? workspace?.name : undefined),
      isPart,
    });
  }
}

function isLabel(text: string): boolean {
  return LABELS.some(([, words]) => words.test(text.replace(/:$/, "").trim()));
}

/** Adds the further lines of a wrapped text in a table to its first line. A period below a line stays a row of its own. */
function joined(rows: readonly TextRow[]): TextRow[] {
  const whole: TextRow[] = [];
  let isTable = false;
  for (const row of rows) {
    isTable ||= headOf(row) !== undefined;
    const [cell] = row.cells;
    const above = whole.at(-1);
    const at = above?.cells.findIndex(({ from }) => Math.abs(from - (cell?.from ?? 0)) < SAME_PLACE) ?? -1;
    if (
      !isTable ||
      !row.isContinuation ||
      above === undefined ||
      cell === undefined ||
      at < 0 ||
      periodIn(cell.text)
    ) {
      whole.push(row);
      continue;
    }
    const cells = above.cells.map((one, n) =>
      n === at ? { ...one, text: `${one.text}${one.text.endsWith("-") ? "" : " "}${cell.text}` } : one,
    );
    whole[whole.length - 1] = { ...above, cells };
  }
  return whole;
}

/** A row is the head of the table if it names a text and an amount. A head that is not known makes the layout unknown. */
function headOf({ cells }: TextRow): Head | undefined {
  const columns = cells.map((cell) => {
    const text = cell.text.replace(/ ?\(?[A-Z]{3}\)?$/, "");
    return { cell, column: HEADS.find(([, words]) => words.test(text))?.[0] };
  });
  const has = (wanted: Column) => columns.some(({ column }) => column === wanted);
  if (!has("text") || !has("amount")) return undefined;
  const known = columns.flatMap(({ column, cell }) => (column === undefined ? [] : [{ column, cell }]));
  return known.length === cells.length ? { columns: known } : undefined;
}

/** The column whose head a cell is below; else the nearest, by either end. */
function columnOf({ from, to }: TextCell, { columns }: Head): Column {
  const distance = ({ cell }: Head["columns"][number]) => {
    const overlap = Math.min(to, cell.to) - Math.max(from, cell.from);
    if (overlap > 0) return -overlap;
    return Math.min(
      Math.abs(from - cell.from),
      Math.abs(to - cell.to),
      Math.abs(from - cell.to),
      Math.abs(to - cell.from),
    );
  };
  const [nearest] = [...columns].sort((one, other) => distance(one) - distance(other));
  return nearest?.column ?? "text";
}

interface Sum {
  readonly label: string;
  readonly written: Written;
  /** It has a currency or decimals, so it is no number of a page or a bank. */
  readonly isMoney: boolean;
}

function sumIn(row: TextRow): Sum | undefined {
  const [last, ...labels] = [...row.cells].reverse();
  const money = last && moneyIn(last.text);
  if (last === undefined || money === undefined || labels.length === 0) return undefined;
  const label = rowText({ cells: labels.reverse() })
    .replace(/:$/, "")
    .replace(/ ?\(?[A-Z]{3}\)?$/, "")
    .trim();
  const written = { text: last.text, place: row.place, row: rowText(row) };
  return { label, written, isMoney: money.currency !== undefined || /[.,]\d{2,3}$/.test(money.number) };
}

/** Codes of currencies beside a number, or in a head such as `Amount (USD)`. */
function marksIn(row: TextRow): { mark: string; place: string }[] {
  const text = rowText(row);
  const beside = [
    ...text.matchAll(
      /\d\s?([A-Z]{3})\b|\b([A-Z]{3})\s?[\p{Sc}\d]|\b(?:amount|total|price)s? \(?([A-Z]{3})\b/giu,
    ),
  ];
  return beside.flatMap(([, after, before, head]) => {
    const mark = after ?? before ?? head ?? "";
    return CURRENCIES.has(mark) && dateIn(text) === undefined ? [{ mark, place: row.place }] : [];
  });
}
