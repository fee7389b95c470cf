import { DAY_MS } from "../../src/domain/time/stride.ts";
import { METER, type Meter } from "../../src/domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../src/domain/usage/record.ts";
import { now } from "./clock.ts";
import { type Bench, setup } from "./source.ts";

export const ALL = { settings: { meters: ["traces", "longlived", "deployments"] } } as const;
export const DAYS_OF_DEPLOYMENTS = 9;

/** A server that counts everything; its deployment usage began before the data start. */
export async function setupAll(
  standin: NonNullable<Parameters<typeof setup>[0]>["standin"] = {},
): Promise<Bench> {
  const deploymentStart = new Date(now() - DAYS_OF_DEPLOYMENTS * DAY_MS).toISOString().slice(0, 10);
  return setup({ standin: { contract: "day-granular", deploymentStart, ...standin } });
}

/** `meter dimension workspace id measure day` with the amount, as stored. Zeros are left out. */
export async function stored(bench: Bench): Promise<Map<string, number>> {
  const rows = await bench.sql<{ key: string; amount: number }>(`
    SELECT concat_ws(' ', c.kind, c.trace_tier, c.group_by, w.external_id, coalesce(nullif(e.external_id, ''), '(none)'),
                     s.measure, r.bucket_start) AS key, r.traces AS amount
    FROM usage.scope c
    JOIN usage.entity w ON w.entity_id = c.workspace_id
    JOIN usage.series s USING (scope_id)
    JOIN usage.entity e ON e.entity_id = s.entity_id
    JOIN usage.dated_record r USING (series_id)
    WHERE c.stride = 'day' AND r.traces > 0`);
  return new Map(rows.map(({ key, amount }) => [key, Number(amount)]));
}

/** What is known of each meter of the server. */
export const meters = (bench: Bench) =>
  bench.sql<{ meter: string; state: string; evidence: string; starts_on: string | null }>(
    "SELECT meter, state, evidence, starts_on::text FROM usage.source_meter ORDER BY meter",
  );

/** The same as the stand-in answers it, day by day. */
export async function answered(
  bench: Bench,
  starts: Partial<Record<Meter, number>>,
): Promise<Map<string, number>> {
  const { standin, today } = bench;
  const found = new Map<string, number>();
  for (const [meter, start] of Object.entries(starts) as [Meter, number][]) {
    const { kind, tier, measures } = METER[meter];
    for (const { id } of standin.organisation.workspaces) {
      for (const groupBy of GROUPINGS) {
        const url = new URL("/api/v1/orgs/current/billing/granular-usage", standin.url);
        url.search = String(
          new URLSearchParams({
            start_time: new Date(start).toISOString(),
            end_time: new Date(today + DAY_MS).toISOString(),
            group_by: groupBy,
            workspace_ids: id,
            ...(kind === "traces" ? {} : { kind }),
            ...(tier === "all" ? {} : { trace_tier: tier }),
          }),
        );
        const response = await fetch(url, { headers: { "x-api-key": standin.apiKey } });
        const { usage } = (await response.json()) as { usage: Record<string, never>[] };
        for (const record of usage) {
          for (const measure of measures) {
            const { dimensions, time_bucket } = record as unknown as {
              dimensions: Record<string, string | null>;
              time_bucket: string;
            };
            const name = dimensions[ID[groupBy]] ?? "(none)";
            const key = [kind, tier, groupBy, id, name, measure, time_bucket.slice(0, 10)].join(" ");
            const amount = Number(record[measure]);
            if (amount > 0) found.set(key, (found.get(key) ?? 0) + amount);
          }
        }
      }
    }
  }
  return found;
}

const ID: Record<GroupBy, string> = {
  workspace: "workspace_id",
  project: "project_id",
  user: "user_id",
  api_key: "api_key_short_key",
};
