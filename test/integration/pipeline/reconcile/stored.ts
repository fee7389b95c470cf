import type { Bench } from "../../../support/source.ts";

/** One stored record of a final day by project in workspace 0. */
export async function aRecord({ sql, dataStart }: Bench) {
  const [record] = await sql<{ series_id: number; traces: number; external_id: string; scope_id: number }>(
    `SELECT r.series_id, r.traces, e.external_id, s.scope_id
     FROM usage.dated_record r JOIN usage.series s USING (series_id) JOIN usage.scope c USING (scope_id)
     JOIN usage.entity e ON e.entity_id = s.entity_id
     WHERE c.group_by = 'project' AND c.stride = 'day' AND r.bucket_start = $1::date ORDER BY r.traces DESC LIMIT 1`,
    [new Date(dataStart).toISOString().slice(0, 10)],
  );
  if (record === undefined) throw new Error("no record");
  return record;
}

export const firstDay = (bench: Bench) => new Date(bench.dataStart).toISOString().slice(0, 10);
