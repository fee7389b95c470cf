import type pg from "pg";

export interface Size {
  readonly records: number;
  readonly seed: number;
  readonly workspaces?: number;
  readonly years?: number;
}

const YEARS = 3;
const FULL = 50_000_000;
const ORGANISATION = { workspace: 20, project: 200, user: 1000, api_key: 300 } as const;
/** A user works in so many workspaces; a project and a key belong to one. */
const WORKSPACES_OF_A_USER = 5;

/** Fills an empty, migrated database, and analyzes nothing. All follows from the seed, but for the clock that it ends at. */
export async function seedUsage(client: pg.Client, size: Size, say: (line: string) => void): Promise<void> {
  await client.query("SET TIME ZONE 'UTC'");
  for (const statement of [...organisation(size), ...coverage()]) await client.query(statement);
  await client.query("ALTER TABLE usage.hourly_record DROP CONSTRAINT hourly_record_pkey");
  await client.query("SET maintenance_work_mem = '256MB'; SET work_mem = '128MB'");
  const { rows: months } = await client.query<{ from: string; to: string }>(`
    SELECT m::text AS from, least(m + interval '1 month', now() + interval '1 hour')::text AS to
    FROM usage.source, generate_series(date_trunc('month', data_start), now(), interval '1 month') m`);
  for (const { from, to } of months) {
    for (const statement of month(size.seed)) {
      await client.query(statement.replaceAll("$from", `'${from}'`).replaceAll("$to", `'${to}'`));
    }
    say(`seeded ${from.slice(0, 7)}`);
  }
  for (const statement of [...otherMeters(), ...owners()]) await client.query(statement);
  await client.query(`
    ALTER TABLE usage.hourly_record
      ADD CONSTRAINT hourly_record_pkey PRIMARY KEY (series_id, bucket_start) INCLUDE (traces);
    INSERT INTO usage.monthly_total
    SELECT series_id, usage.month_of(bucket_start), sum(traces), count(*) FROM usage.dated_record GROUP BY 1, 2 ORDER BY 1, 2;
    DROP TABLE bench_series`);
}

function organisation({ records, seed, workspaces: requested = 0, years = YEARS }: Size): string[] {
  const share = records / FULL;
  const count = (most: number, least: number) => Math.max(least, requested, Math.round(most * share));
  const workspaces = requested === 0 ? count(ORGANISATION.workspace, 2) : requested;
  const entities = [
    { dimension: "workspace", count: workspaces },
    { dimension: "project", count: count(ORGANISATION.project, 4) },
    { dimension: "user", count: count(ORGANISATION.user, 20) },
    { dimension: "api_key", count: count(ORGANISATION.api_key, 6) },
  ];
  const apiece = Math.min(WORKSPACES_OF_A_USER, workspaces);
  return [
    `INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest)
     VALUES ('default', 'http://localhost', (now() - interval '${years} years')::date, 744, '')`,
    ...entities.map(
      ({ dimension, count }) => `
        INSERT INTO usage.entity (source_id, dimension, external_id, first_seen_at, last_seen_at)
        SELECT source_id, '${dimension}', md5('${seed} ${dimension} ' || n)::uuid::text, data_start, now()
        FROM usage.source, generate_series(0, ${count - 1}) n ORDER BY n`,
    ),
    `INSERT INTO usage.entity_name (entity_id, fetch_number, fetched_at, name)
     SELECT entity_id, CASE nth WHEN ' new' THEN 2 ELSE 1 END, data_start + CASE nth WHEN ' new' THEN 400 ELSE 0 END,
            dimension || ' ' || entity_id || nth
     FROM usage.entity JOIN usage.source USING (source_id), (VALUES (''), (' new')) v (nth)
     WHERE dimension <> 'api_key' AND (nth = '' OR entity_id % 3 = 0)`,
    "INSERT INTO usage.workspace (entity_id, readable_at) SELECT entity_id, now() FROM usage.entity WHERE dimension = 'workspace'",
    `INSERT INTO usage.scope (source_id, group_by, workspace_id, stride)
     SELECT source_id, g, entity_id, s
     FROM usage.workspace JOIN usage.entity USING (entity_id),
          unnest('{workspace,project,user,api_key}'::text[]) WITH ORDINALITY u (g, i), unnest('{hour,day}'::text[]) s
     ORDER BY entity_id, i, s`,
    `INSERT INTO usage.scope (source_id, kind, trace_tier, group_by, workspace_id, stride)
     SELECT source_id, m.kind, m.tier, group_by, workspace_id, stride
     FROM usage.trace_scope, (VALUES ('traces', 'longlived'), ('langsmith_deployments', 'all')) m (kind, tier)
     WHERE stride = 'day'`,
    `INSERT INTO usage.source_meter (source_id, meter, state, evidence, starts_on, request_again_at)
     SELECT source_id, m, 'counted', '', CASE m WHEN 'deployments' THEN data_start END, now()
     FROM usage.source, unnest('{longlived,deployments}'::text[]) m`,
    `INSERT INTO usage.series (scope_id, entity_id)
     SELECT c.scope_id, e.entity_id
     FROM (
       SELECT entity_id, dimension, row_number() OVER (PARTITION BY dimension ORDER BY entity_id) - 1 AS n FROM usage.entity
     ) e
     CROSS JOIN generate_series(0, ${apiece - 1}) i
     JOIN (
       SELECT scope_id, group_by, dense_rank() OVER (ORDER BY workspace_id) - 1 AS workspace FROM usage.trace_scope
     ) c ON c.group_by = e.dimension AND c.workspace = (e.n + i) % ${workspaces}
     WHERE e.dimension = 'user' OR i = 0
     ORDER BY c.scope_id, e.entity_id`,
    `CREATE TEMPORARY TABLE bench_series AS
     SELECT h.series_id, d.series_id AS day_series_id, w.series_id AS workspace_series_id, hs.group_by,
            (h.series_id * 7) % 12 AS first_hour
     FROM usage.series h
     JOIN usage.trace_scope hs ON hs.scope_id = h.scope_id AND hs.stride = 'hour'
     JOIN usage.trace_scope ds ON ds.group_by = hs.group_by AND ds.workspace_id = hs.workspace_id AND ds.stride = 'day'
     JOIN usage.series d ON d.scope_id = ds.scope_id AND d.entity_id = h.entity_id
     JOIN usage.trace_scope ws ON ws.group_by = 'workspace' AND ws.workspace_id = hs.workspace_id AND ws.stride = 'hour'
     JOIN usage.series w ON w.scope_id = ws.scope_id;
     ANALYZE bench_series`,
  ];
}

function coverage(): string[] {
  return [
    `INSERT INTO usage.coverage
     SELECT scope_id, lower(part), upper(part), upper(part) <= today - interval '3 days', nextval('usage.fetch_number'),
            CASE WHEN old THEN today - interval '8 days' ELSE least(upper(part) + interval '3 days', now()) END,
            tstzmultirange(part)
     FROM usage.scope
     JOIN usage.source USING (source_id)
     CROSS JOIN date_trunc('day', now()) today
     CROSS JOIN LATERAL (
       SELECT tstzrange(data_start, today - interval '10 days') AS part, true AS old
       UNION ALL
       SELECT tstzrange(d, d + interval '1 day'), false
       FROM generate_series(today - interval '10 days', today, interval '1 day') d WHERE stride = 'day'
       UNION ALL
       SELECT part * tstzrange(NULL, date_trunc('hour', now()) + interval '1 hour'), false
       FROM generate_series(today - interval '10 days', today, interval '1 day') d,
            LATERAL (VALUES (tstzrange(d, d + interval '23 hours')), (tstzrange(d + interval '23 hours', d + interval '1 day'))) v (part)
       WHERE stride = 'hour'
     ) p
     WHERE NOT isempty(part)`,
    `INSERT INTO usage.became_final
     SELECT scope_id, data_start, date_trunc('day', now()) - interval '3 days', now()
     FROM usage.scope JOIN usage.source USING (source_id) WHERE stride = 'day'`,
  ];
}

function otherMeters(): string[] {
  return [
    `INSERT INTO usage.entity (source_id, dimension, external_id, first_seen_at, last_seen_at)
     SELECT source_id, 'deployment', external_id, first_seen_at, last_seen_at FROM usage.entity WHERE dimension = 'project'`,
    `CREATE TEMPORARY TABLE bench_other AS
     SELECT s.series_id AS day_series_id, o.scope_id, coalesce(d.entity_id, s.entity_id) AS entity_id, m.measure
     FROM usage.series s
     JOIN usage.trace_scope c ON c.scope_id = s.scope_id AND c.stride = 'day'
     JOIN usage.scope o
       ON o.group_by = c.group_by AND o.workspace_id = c.workspace_id AND o.stride = 'day'
      AND (o.kind <> 'traces' OR o.trace_tier <> 'all')
     JOIN unnest('{traces,nodes_executed,agent_runs,agent_uptime_seconds}'::text[]) m (measure)
       ON (m.measure = 'traces') = (o.kind = 'traces')
     JOIN usage.entity e USING (entity_id)
     LEFT JOIN usage.entity d
       ON d.dimension = 'deployment' AND d.external_id = e.external_id AND e.dimension = 'project' AND o.kind <> 'traces'`,
    "INSERT INTO usage.series (scope_id, entity_id, measure) SELECT scope_id, entity_id, measure FROM bench_other",
    `CREATE TEMPORARY TABLE bench_pair AS
     SELECT o.day_series_id, s.series_id FROM bench_other o JOIN usage.series s USING (scope_id, entity_id, measure);
     ANALYZE bench_pair`,
    `INSERT INTO usage.dated_record
     SELECT p.series_id, r.bucket_start, r.traces / 5
     FROM usage.dated_record r JOIN bench_pair p ON p.day_series_id = r.series_id
     WHERE (p.day_series_id + (r.bucket_start - DATE '2020-01-01')) % 3 = 0
     ORDER BY r.bucket_start, p.series_id`,
    "DROP TABLE bench_other, bench_pair",
  ];
}

function owners(): string[] {
  return [
    `INSERT INTO usage.resource_tag
     SELECT DISTINCT c.workspace_id, 'project', e.external_id, 'Application', 'team ' || e.entity_id % 50, '1900-01-01'::date, NULL::date
     FROM usage.trace_scope c JOIN usage.series s USING (scope_id) JOIN usage.entity e USING (entity_id)
     WHERE c.group_by = 'project' AND e.entity_id % 3 = 0`,
    "INSERT INTO usage.owner_file (content, divide_by) VALUES ('', 'project')",
    `INSERT INTO usage.owner_rule
     SELECT n, n, NULL, CASE WHEN n >= 1900 THEN w.external_id END, CASE WHEN n < 1500 THEN 'project' END,
            CASE WHEN n < 1500 THEN coalesce(p.external_id, 'not yet ' || n) END, CASE WHEN n BETWEEN 1700 AND 1899 THEN 'project *' || n || '*' END,
            CASE WHEN n BETWEEN 1500 AND 1699 THEN 'Application' END, CASE WHEN n BETWEEN 1500 AND 1699 THEN 'team ' || n % 50 END, '(,)'
     FROM generate_series(1, 2000) n
     LEFT JOIN (SELECT external_id, row_number() OVER () AS place FROM usage.entity WHERE dimension = 'project') p ON p.place = n AND n % 2 = 0
     LEFT JOIN (SELECT external_id, row_number() OVER () AS place FROM usage.entity WHERE dimension = 'workspace') w ON w.place = n - 1899`,
    "INSERT INTO usage.owner_share SELECT rule_number, 'team ' || rule_number % 50, 'CC-' || rule_number % 10, 1 FROM usage.owner_rule",
  ];
}

function month(seed: number): string[] {
  return [
    `CREATE TEMPORARY TABLE bench_hour AS
     SELECT s.series_id, s.day_series_id, s.workspace_series_id, s.group_by, h.hour, 1 + (x.n >> 20) % 200 AS traces
     FROM usage.source
     CROSS JOIN generate_series(greatest($from::timestamptz, data_start), $to::timestamptz - interval '1 hour', interval '1 hour') h (hour)
     CROSS JOIN LATERAL (SELECT extract(hour FROM h.hour)::integer AS of_day, extract(isodow FROM h.hour) > 5 AS weekend) t
     CROSS JOIN bench_series s
     CROSS JOIN LATERAL (
       SELECT hashint8extended(s.series_id::bigint << 32 | extract(epoch FROM h.hour)::bigint / 3600, ${seed}) & 4611686018427387903 AS n
     ) x
     WHERE s.group_by <> 'workspace' AND x.n % 1000 < CASE
       WHEN s.group_by <> 'user' THEN 800
       WHEN t.weekend THEN 120
       WHEN t.of_day >= s.first_hour AND t.of_day < s.first_hour + 12 THEN 680
       ELSE 60
     END`,
    `INSERT INTO bench_hour
     SELECT w.series_id, w.day_series_id, w.series_id, 'workspace', h.hour, sum(h.traces)
     FROM bench_hour h JOIN bench_series w ON w.series_id = h.workspace_series_id
     WHERE h.group_by = 'project' GROUP BY w.series_id, w.day_series_id, h.hour`,
    `INSERT INTO usage.hourly_record
     SELECT series_id, hour, traces FROM bench_hour ORDER BY date_trunc('day', hour), series_id, hour`,
    `INSERT INTO usage.dated_record
     SELECT day_series_id, hour::date, sum(traces) FROM bench_hour GROUP BY 1, 2 ORDER BY 2, 1`,
    "DROP TABLE bench_hour",
  ];
}
