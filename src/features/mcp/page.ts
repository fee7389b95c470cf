/** About 20,000 tokens. Some clients refuse a larger result. */
export const MOST_BYTES = 60_000;

/** Only `rows` may be cut. */
export interface Found {
  readonly facts: Readonly<Record<string, unknown>>;
  readonly rows: readonly unknown[];
  /** Position of the first row. Default: 0. */
  readonly start?: number;
  readonly hasMore?: boolean;
}

/**
 * Returns what fits into `mostBytes` from the row `cursor` on, and at least one row. `next_cursor` is where the rest begins; null
 * if there is none.
 */
export function pageOf(
  { facts, rows, start = 0, hasMore = false }: Found,
  { list, cursor, mostBytes }: { list: string; cursor: number; mostBytes: number },
): Record<string, unknown> {
  const left = rows.slice(cursor - start);
  let bytes = bytesOf(facts);
  const end = left.findIndex((row) => {
    bytes += bytesOf(row);
    return bytes > mostBytes;
  });
  const shown = end === -1 ? left : left.slice(0, Math.max(end, 1));
  const next = cursor + shown.length;
  if (shown.length === left.length && !hasMore)
    return { ...facts, [list]: shown, next_cursor: null, note: null };
  const note = `This is not all. Send the same request with cursor ${next} for the rest.`;
  return { ...facts, [list]: shown, next_cursor: next, note };
}

function bytesOf(value: unknown): number {
  return Buffer.byteLength(JSON.stringify(value)) + 1;
}
