import pg from "pg";
import { MEASURES } from "../../core/domain/usage/meter.ts";
import { keyOf, type View, type ViewColumn } from "../../core/store/db/views.ts";

export interface Dataset {
  readonly view: View;
  readonly columns: readonly ViewColumn[];
  /** Undefined: the view has no days, so one file has all rows. */
  readonly day: ViewColumn | undefined;
}

/** UTC days, end exclusive. An end that is left out is open. */
export interface Range {
  readonly from?: string;
  readonly to?: string;
}

/** Facts of the rows of a file. The file is written again if one of them changes. */
export interface Rows {
  readonly rows: number;
  /** Two sums of 64-bit hashes of the rows, in any order. */
  readonly digest: string;
  /** Exact sums by column; null: no row has the amount. */
  readonly sums: Readonly<Record<string, string | null>>;
  readonly isFinal: boolean | null;
  readonly coverage: string[] | null;
}

export const NO_ROWS: Rows = { rows: 0, digest: "", sums: {}, isFinal: null, coverage: null };

interface Part {
  readonly source: string;
  readonly range: Range;
}

const AMOUNTS = [...MEASURES, "quantity", "estimated_cost"];
const BATCH = 1000;

const quote = pg.escapeIdentifier;
const literal = pg.escapeLiteral;

/**
 * The days that a view may show of a source, end exclusive, and this transaction's instant as Postgres writes it in UTC.
 * Undefined: unknown source.
 */
export async function daysOfSource(
  client: pg.Client,
  source: string,
): Promise<{ from: string; to: string; asOf: string } | undefined> {
  const { rows } = await client.query<{ from: string; to: string; asOf: string }>(
    `select least(s.data_start, (min(v.period_start) at time zone 'UTC')::date)::text as "from",
            greatest((now() at time zone 'UTC')::date + 1, (max(v.period_end) at time zone 'UTC')::date)::text as "to",
            to_char(now() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as "asOf"
     from usage.source s
     left join usage.scope c using (source_id)
     left join usage.coverage v using (scope_id)
     where s.slug = $1
     group by s.source_id, s.data_start`,
    [source],
  );
  return rows[0];
}

/**
 * Returns false if another process writes the files of the source. Postgres releases the lock when this transaction ends. From
 * here on a statement may take an hour at most.
 */
export async function lockFiles(client: pg.Client, source: string): Promise<boolean> {
  await client.query("set local statement_timeout = '1h'");
  const { rows } = await client.query<{ is: string }>(
    "select pg_try_advisory_xact_lock(hashtextextended('usage-etl-files ' || $1, 0)) as is",
    [source],
  );
  return rows[0]?.is === "t";
}

export async function countRows(client: pg.Client, dataset: Dataset, part: Part): Promise<Rows> {
  const has = (name: string) => dataset.view.columns.some((column) => column.name === name);
  const sums = AMOUNTS.filter(has).map((name) => `${literal(name)}, sum(${quote(name)})::text`);
  const inner = dataset.columns.map(({ name }) => quote(name)).join(", ");
  const { rows } = await client.query<Record<string, string | null>>(
    `with row as materialized (select ${inner} from ${fromOf(dataset, part)}),
          hashed as (select row.*, (row)::text as whole from row)
     select count(*) as rows,
            coalesce(sum(hashtextextended(whole, 0)) || ' ' || sum(hashtextextended(whole, 1)), '') as digest,
            json_build_object(${sums.join(", ")}) as sums,
            ${has("is_final") ? "bool_and(is_final)" : "null"} as is_final,
            ${has("coverage_status") ? "json_agg(distinct coverage_status)" : "null"} as coverage
     from hashed`,
  );
  const one = rows[0] as (typeof rows)[number];
  return {
    rows: Number(one.rows),
    digest: one.digest as string,
    sums: JSON.parse(one.sums as string),
    isFinal: one.is_final == null ? null : one.is_final === "t",
    coverage: one.coverage == null ? null : JSON.parse(one.coverage),
  };
}

/** The order of the rows in a file. Readers expect texts in the order of their bytes. */
export function orderOf({ view, day }: Dataset): string[] {
  return [...new Set([...(day === undefined ? [] : [day.name]), ...keyOf(view)])];
}

export async function readRows(
  client: pg.Client,
  dataset: Dataset,
  { signal, ...part }: Part & { readonly signal: AbortSignal },
  write: (rows: readonly (string | null)[][]) => Promise<void>,
): Promise<void> {
  const order = orderOf(dataset).map((name) => {
    const isText = dataset.columns.find((column) => column.name === name)?.type === "text";
    return `${quote(name)}${isText ? ' collate "C"' : ""}`;
  });
  await client.query(
    `declare rows no scroll cursor for
     select ${dataset.columns.map(({ name }) => quote(name)).join(", ")}
     from ${fromOf(dataset, part)}${order.length === 0 ? "" : ` order by ${order.join(", ")}`}`,
  );
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await client.query<(string | null)[]>({
      text: `fetch ${BATCH} from rows`,
      rowMode: "array",
    });
    if (rows.length === 0) break;
    await write(rows);
  }
  await client.query("close rows");
}

function fromOf({ view, day }: Dataset, { source, range: { from, to } }: Part): string {
  const name = quote(day?.name ?? "");
  return [
    `${view.schema}.${quote(view.name)} where source_id = ${literal(source)}`,
    ...(from === undefined ? [] : [`${name} >= ${literal(from)}`]),
    ...(to === undefined ? [] : [`${name} < ${literal(to)}`]),
  ].join(" and ");
}
