import { sql } from "kysely";
import { UsageError } from "../../core/base/errors.ts";
import { amountOf, minorDigits } from "../../core/domain/usage/amount.ts";
import type { Store } from "../../core/store/db/database.ts";
import { queryValues } from "../../core/store/db/query.ts";
import { type Actor, recordAction } from "../../core/store/work/operator-actions.ts";

/** Measures that the platform charges and no API reports. A line for one stands in the place of the line `not_reported`. */
export const ADDED_MEASURES = ["deployment_lcu", "deployment_lsu"] as const;
export type AddedMeasure = (typeof ADDED_MEASURES)[number];

interface AddedLine {
  readonly text: string;
  readonly measure: AddedMeasure | null;
  /** Exact decimal in `currency`. Negative: a credit, or a line that is taken back. */
  readonly amount: string;
  readonly currency: string;
  readonly reason: string;
}

const CURRENCIES = new Set(Intl.supportedValuesOf("currency"));
const MOST_CHARACTERS = 200;

/** Error: `added_line_invalid`, which names what is wrong. */
export function parseAddedLine(given: AddedLine): AddedLine {
  const problem = problemOf(given);
  if (problem === undefined) return { ...given, text: given.text.trim(), reason: given.reason.trim() };
  throw new UsageError({
    code: "added_line_invalid",
    message: `The line was not added: ${problem}.`,
    next: 'Give it as in `usage-etl bill add 2026-10 "Seats" 390.00 USD --reason "10 seats, invoice 4711"`.',
  });
}

function problemOf({ text, amount, currency, reason }: AddedLine): string | undefined {
  for (const [what, words] of [
    ["text", text],
    ["reason", reason],
  ] as const) {
    if (words.trim() === "") return `its ${what} is empty`;
    if (words.length > MOST_CHARACTERS || /\p{Cc}/u.test(words))
      return `its ${what} is no single line of at most ${MOST_CHARACTERS} characters`;
  }
  if (!CURRENCIES.has(currency)) return `${JSON.stringify(currency)} is not a currency such as USD`;
  const digits = minorDigits(currency);
  const [, whole = "", fraction = ""] = /^-?(\d+)(?:\.(\d+))?$/.exec(amount) ?? [];
  if (whole === "")
    return `${JSON.stringify(amount)} is not an amount such as 390.00, without separators of thousands`;
  if (whole.length > 12 || fraction.length > digits)
    return `${amount} has more than 12 digits before the point, or more than ${digits} after it`;
  return amountOf(amount) === 0n ? "its amount is 0" : undefined;
}

/** Stores the line with who added it, in one transaction. Error: `bill_missing`, since a line is only on a bill. */
export function addLine(
  store: Store,
  { by, sourceId, monthStart, ...line }: AddedLine & { by: Actor; sourceId: number; monthStart: string },
): Promise<AddedLine & { readonly addedLineId: number }> {
  const { text, measure, amount, currency, reason } = line;
  return store.transaction(async ({ db }) => {
    const [addedLineId] = await queryValues<number>(db)`
      insert into usage.added_line (source_id, month_start, line_text, measure, amount, currency, reason, added_by)
      select source_id, month_start, ${text}, ${measure}, ${sql`${amount}::numeric`}, ${currency}, ${reason}, ${by.name}
      from usage.usage_month where source_id = ${sourceId} and month_start = ${monthStart}::date
      returning added_line_id
    `;
    if (addedLineId === undefined) {
      throw new UsageError({
        code: "bill_missing",
        message: `The line was not added: ${monthStart.slice(0, 7)} has no bill, because no usage of it is loaded.`,
        next: "Choose a month that `usage-etl bill` shows, or set USAGE_DATA_START earlier and load it.",
      });
    }
    const detail = `${monthStart.slice(0, 7)}: ${text}, ${amount} ${currency}: ${reason}`;
    await recordAction(db, by, { sourceId, action: "bill.add", detail });
    return { ...line, addedLineId };
  });
}
