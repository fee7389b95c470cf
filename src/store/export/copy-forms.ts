import pg from "pg";
import { queryOf, type Selection } from "./view-query.ts";
import type { ViewColumn } from "./views.ts";

/** `COPY (query) TO STDOUT (options)`. */
export interface CopyForm {
  readonly query: string;
  readonly options: string;
}

/**
 * RFC 4180 with `\n`, written by Postgres. Null is an empty cell, an empty text is `""`. With `guard`, a text that a
 * spreadsheet would run as a formula is prefixed with `'` (CSV injection). Negative numbers are not.
 */
export function csvForm(selection: Selection, { guard }: { guard: boolean }): CopyForm {
  const query = cellsOf(selection, (cell, { type }) => {
    if (type === "boolean") return `${cell}::text`;
    if (type === "timestamp with time zone") return isoInstant(cell);
    if (!guard || NO_FORMULA.includes(type)) return cell;
    return `CASE WHEN ascii(${cell}::text) IN (${FORMULA_STARTS}) THEN '''' || ${cell} ELSE ${cell}::text END`;
  });
  return { query, options: "FORMAT csv, HEADER" };
}

/**
 * JSON Lines: one object per line, so that a reader holds only one. Integers are numbers with all their digits. Decimals are
 * texts, because most readers would parse them as floats.
 */
export function jsonForm(selection: Selection): CopyForm {
  const cells = cellsOf(selection, (cell, { type }) => {
    if (AS_IN_JSON.includes(type)) return cell;
    return type === "timestamp with time zone" ? isoInstant(cell) : `${cell}::text`;
  });
  return {
    query: `SELECT row_to_json(object) FROM (${cells}) object`,
    // JSON escapes control characters, so it holds neither of these and is written as it is.
    options: String.raw`FORMAT csv, DELIMITER E'\x02', QUOTE E'\x01'`,
  };
}

/** Types whose texts never begin like a formula, but for a minus. */
const NO_FORMULA = ["bigint", "integer", "numeric", "date"];
const AS_IN_JSON = ["bigint", "integer", "boolean"];
/** Those that OWASP names: = + - @, tab, carriage return, and the wide forms of the first four. */
export const FORMULA_SIGNS: readonly string[] = [..."=+-@\t\r＝＋－＠"];
const FORMULA_STARTS = FORMULA_SIGNS.map((character) => character.codePointAt(0)).join(", ");

/** What is written of each column. The order within keeps Postgres from computing a column for each mention of it. */
function cellsOf(selection: Selection, cellOf: (cell: string, column: ViewColumn) => string): string {
  const cells = selection.columns.map((column) => {
    const name = pg.escapeIdentifier(column.name);
    return `${cellOf(name, column)} AS ${name}`;
  });
  return `SELECT ${cells.join(", ")} FROM (${queryOf(selection)}) selected`;
}

/** Postgres writes `2026-03-01 05:00:00.12+00`, because the session is in UTC. ISO 8601 is `2026-03-01T05:00:00.12Z`. */
function isoInstant(cell: string): string {
  return `replace(replace(${cell}::text, ' ', 'T'), '+00', 'Z')`;
}
