import type pg from "pg";

/** A line of a test's invoice. Null or left out: not written on it. */
export interface GivenLine {
  readonly text: string;
  readonly kind?: string;
  readonly quantity?: string | null;
  readonly unit?: string;
  readonly unitPrice?: string | null;
  readonly amount: string;
  readonly period?: readonly [from: string, to: string];
  readonly workspace?: string | null;
  /** The text of the sum row above it. Consecutive lines with the same one and workspace are parts of one row. */
  readonly sum?: string;
}

export interface GivenInvoice {
  readonly number: string;
  readonly issuedOn?: string | null;
  readonly status?: string;
  readonly corrects?: string | null;
  readonly currency?: string;
  readonly lines: readonly GivenLine[];
  /** Default: the sum of the lines, which then must be whole cents. */
  readonly total?: string;
}

/** Stores an invoice of the only source as an import does, with sum rows. Returns its number in the tables. */
export async function insertInvoice(client: pg.Client, given: GivenInvoice): Promise<number> {
  const cents = given.lines.reduce((sum, { amount }) => sum + Math.round(Number(amount) * 100), 0);
  const { rows } = await client.query(
    `INSERT INTO usage.invoice (source_id, issuer, number, status, issued_on, currency, corrects_number, total, file_name, file_form,
                                file, file_digest, imported_by)
     SELECT min(source_id), 'LangChain, Inc.', $1, $2, $3, $4, $5, $6, 'test.json', 'json', '', '', 'test' FROM usage.source
     RETURNING invoice_id`,
    [
      ...[given.number, given.status ?? "issued", given.issuedOn ?? null, given.currency ?? "USD"],
      ...[given.corrects ?? null, given.total ?? (cents / 100).toFixed(2)],
    ],
  );
  const invoiceId = Number(rows[0].invoice_id);
  const lines: Record<string, unknown>[] = [];
  let above: { key: string; number: number } | undefined;
  for (const line of given.lines) {
    const key = JSON.stringify([line.sum, line.workspace]);
    const about = {
      ...{ invoice_id: invoiceId, kind: line.kind ?? "usage", workspace: line.workspace ?? null },
      ...{
        period_start: line.period?.[0],
        period_end: line.period?.[1],
        place: "line",
        source_text: line.text,
      },
    };
    if (line.sum !== undefined && above?.key !== key) {
      above = { key, number: lines.length + 1 };
      lines.push({ ...about, line_number: above.number, line_text: line.sum, is_sum: true, amount: "0" });
    }
    lines.push({
      ...{ ...about, line_number: lines.length + 1, line_text: line.text, is_sum: false, unit: line.unit },
      ...{ part_of: line.sum === undefined ? null : above?.number, quantity: line.quantity ?? null },
      ...{ unit_price: line.unitPrice ?? null, amount: line.amount },
    });
  }
  await client.query(
    "INSERT INTO usage.invoice_line SELECT * FROM json_populate_recordset(null::usage.invoice_line, $1)",
    [JSON.stringify(lines)],
  );
  return invoiceId;
}
