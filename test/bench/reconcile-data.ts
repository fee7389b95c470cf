import { createWriteStream } from "node:fs";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { dayOf, type Shape, tracesOf, userId, workspaceId } from "./shapes.ts";

const HEADER =
  "Time Bucket Start,Time Bucket End,Workspace ID,Workspace Name,Project ID,Project Name,User ID,User Email,API Key Short Key,Traces\r\n";

const bucket = (day: number) => new Date(dayOf(day)).toISOString().replace(".000Z", "Z");

export function* exportOf(
  { usersPerWorkspace, days, everyDays }: Shape,
  workspace: number,
): Generator<string> {
  yield HEADER;
  const first = workspace * usersPerWorkspace;
  const users = Array.from({ length: usersPerWorkspace }, (_, i) => first + i);
  const named = users.map((user) => `${userId(user)},user.${user}@example.com`);
  for (let day = 0; day < days; day += everyDays) {
    const buckets = `${bucket(day)},${bucket(day + 1)},,,,,`;
    for (let from = 0; from < users.length; from += 500) {
      yield users
        .slice(from, from + 500)
        .map((user, i) => `${buckets}${named[from + i]},,${tracesOf(user, day)}\r\n`)
        .join("");
    }
  }
}

export async function writeExport(shape: Shape, file: string): Promise<void> {
  await pipeline(Readable.from(exportOf(shape, 0)), createWriteStream(file));
}

export function storeOf(shape: Shape): string {
  const { workspaces, usersPerWorkspace, days, everyDays, differingDays = 0 } = shape;
  const ids = Array.from({ length: workspaces }, (_, i) => `'${workspaceId(i)}'`).join();
  const [start, end] = [dayOf(0), dayOf(days)].map((at) => `'${new Date(at).toISOString()}'`);
  return `
    INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
    VALUES ('default', 'http://localhost', '2026-01-05', 1, '');
    INSERT INTO usage.entity (source_id, dimension, external_id)
    SELECT source_id, 'workspace', id FROM usage.source, unnest(ARRAY[${ids}]) id;
    INSERT INTO usage.workspace (entity_id) SELECT entity_id FROM usage.entity;
    INSERT INTO usage.scope (source_id, group_by, workspace_id, stride)
    SELECT source_id, 'user', entity_id, 'day' FROM usage.entity ORDER BY entity_id;
    CREATE TEMP TABLE u AS
    SELECT n, md5('user ' || n)::uuid::text AS id FROM generate_series(0, ${workspaces * usersPerWorkspace - 1}) n;
    INSERT INTO usage.entity (source_id, dimension, external_id) SELECT source_id, 'user', id FROM usage.source, u ORDER BY n;
    ANALYZE usage.entity; ANALYZE u;
    INSERT INTO usage.entity_name
    SELECT entity_id, 1, ${start}, 'user.' || n || '@example.com' FROM u JOIN usage.entity ON external_id = id;
    INSERT INTO usage.series (scope_id, entity_id)
    SELECT c.scope_id, e.entity_id
    FROM u
    JOIN usage.entity e ON e.external_id = u.id AND e.dimension = 'user'
    JOIN (SELECT scope_id, row_number() OVER (ORDER BY scope_id) - 1 AS w FROM usage.trace_scope) c ON c.w = n / ${usersPerWorkspace}
    ORDER BY n;
    INSERT INTO usage.dated_record
    SELECT s.series_id, '2026-01-05'::date + d, (n::bigint * 7919 + d * 104729) % 4999 + 1
    FROM u JOIN usage.entity e ON e.external_id = u.id JOIN usage.series s USING (entity_id)
    CROSS JOIN generate_series(0, ${days - 1}, ${everyDays}) d
    ORDER BY 1, 2;
    INSERT INTO usage.coverage SELECT scope_id, ${start}, ${end}, true, 1, now(), tstzmultirange(tstzrange(${start}, ${end})) FROM usage.trace_scope;
    UPDATE usage.dated_record SET traces = traces + 1
    WHERE series_id = (SELECT min(series_id) FROM usage.series) AND bucket_start < '2026-01-05'::date + ${differingDays}`;
}
