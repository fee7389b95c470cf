import pg from "pg";
import { MEASURES } from "../../core/domain/usage/meter.ts";
import { keyOf, type View, type ViewColumn } from "../../core/store/db/views.ts";

export interface Dataset {
  readonly view: View;
  /** Columns within a file. Source and day are in the path. */
  readonly columns: readonly ViewColumn[];
  readonly day: ViewColumn | undefined;
}

export interface RowsOfDay {
  readonly day: string | null;
  readonly rows: number;
  /** Two sums of 64-bit hashes of the rows, in any order. */
  readonly digest: string;
  /** Exact sums by column; null: no row has the amount. */
  readonly sums: Readonly<Record<string, string | null>>;
  readonly isFinal: boolean | null;
  readonly coverage: string[] | null;
}

interface Part {
  readonly source: string;
  /** UTC days, end exclusive. */
  readonly range?: { readonly from: string; readonly to: string };
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

/** One entry for each day with rows, sorted by day. */
export async function rowsByDay(client: pg.Client, dataset: Dataset, part: Part): Promise<RowsOfDay[]> {
  const has = (name: string) => dataset.view.columns.some((column) => column.name === name);
  const sums = AMOUNTS.filter(has).map((name) => `${literal(name)}, sum(${quote(name)})::text`);
  const inner = dataset.columns.map(({ name }) => quote(name)).join(", ");
  const day = dataset.day === undefined ? "null" : quote(dataset.day.name);
  const { rows } = await client.query<Record<string, string | null>>(
    `with row as materialized (select ${day}::text as day_of_file, ${inner} from ${fromOf(dataset, part)}),
          hashed as (select row.*, (row)::text as whole from row)
     select day_of_file as day, count(*) as rows,
            sum(hashtextextended(whole, 0)) || ' ' || sum(hashtextextended(whole, 1)) as digest,
            json_build_object(${sums.join(", ")}) as sums,
            ${has("is_final") ? "bool_and(is_final)" : "null"} as is_final,
            ${has("coverage_status") ? "json_agg(distinct coverage_status)" : "null"} as coverage
     from hashed group by 1 order by 1`,
  );
  return rows.map((one) => ({
    day: one.day ?? null,
    rows: Number(one.rows),
    digest: one.digest as string,
    sums: JSON.parse(one.sums as string),
    isFinal: one.is_final == null ? null : one.is_final === "t",
    coverage: one.coverage == null ? null : JSON.parse(one.coverage),
  }));
}

/** Passes on the rows sorted by day and key, with the day as the last column. */
export async function readDays(
  client: pg.Client,
  dataset: Dataset,
  { source, days, signal }: { source: string; days: readonly (string | null)[]; signal: AbortSignal },
  write: (day: string | null, rows: readonly (string | null)[][]) => Promise<void>,
): Promise<void> {
  if (days.length === 0) return;
  const { day, columns, view } = dataset;
  const named = days.flatMap((one) => one ?? []);
  const where = day === undefined ? "" : ` and ${quote(day.name)} in (${named.map(literal).join(", ")})`;
  const order = keyOf(view)
    .filter((name) => name !== "source_id" && name !== day?.name)
    .map(quote);
  const by = [...(day === undefined ? [] : [quote(day.name)]), ...order];
  await client.query(
    `declare rows no scroll cursor for
     select ${columns.map(({ name }) => quote(name)).join(", ")}, ${day === undefined ? "null" : quote(day.name)}::text
     from ${fromOf(dataset, { source })}${where}${by.length === 0 ? "" : ` order by ${by.join(", ")}`}`,
  );
  for (;;) {
    signal.throwIfAborted();
    const { rows } = await client.query<(string | null)[]>({
      text: `fetch ${BATCH} from rows`,
      rowMode: "array",
    });
    if (rows.length === 0) break;
    for (const [of, ownRows] of Map.groupBy(rows, (row) => row.at(-1) ?? null)) await write(of, ownRows);
  }
  await client.query("close rows");
}

function fromOf({ view, day }: Dataset, { source, range }: Part): string {
  const name = quote(day?.name ?? "");
  const within =
    range === undefined || day === undefined
      ? ""
      : ` and ${name} >= ${literal(range.from)} and ${name} < ${literal(range.to)}`;
  return `${view.schema}.${quote(view.name)} where source_id = ${literal(source)}${within}`;
}
