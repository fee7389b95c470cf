import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import type { Interval } from "../../src/core/domain/time/window.ts";
import { METER, type Meter } from "../../src/core/domain/usage/meter.ts";
import { GROUPINGS, type GroupBy } from "../../src/core/domain/usage/record.ts";
import type { DeploymentMeasure } from "../../src/features/standin/engine/ledger.ts";
import type { Standin, StandinOptions } from "../../src/features/standin/server.ts";
import { now } from "./clock.ts";
import { type Bench, setup } from "./source.ts";
import { type Figures, together } from "./tables.ts";

export const EVERYTHING = { settings: { meters: ["traces", "longlived", "deployments"] } } as const;
export const LOADED = EVERYTHING.settings.meters;

export async function setupMeters(options: Parameters<typeof setup>[0] = {}): Promise<Bench> {
  const bench = await setupUnwatched(options);
  await bench.open(EVERYTHING);
  await seeLateChanges(bench, 72);
  return bench;
}

/** As if it was watched for two months how late tiers change: the last change came at this age. */
export async function seeLateChanges({ sql }: Pick<Bench, "sql">, ageHours: number): Promise<void> {
  await sql(
    `INSERT INTO usage.late_change (source_id, observed_on, trace_tier, group_by, stride, was_final, age_hours, changes, traces_moved)
     SELECT source_id, (now() AT TIME ZONE 'UTC')::date - 60, tier, 'workspace', 'day', false, $1, 20, 20
     FROM usage.source, unnest('{longlived,shortlived}'::text[]) tier`,
    [ageHours],
  );
}

/** The same, but nothing was seen yet of how late tiers change. */
export async function setupUnwatched(options: Parameters<typeof setup>[0] = {}): Promise<Bench> {
  const { days = 6 } = options;
  const deploymentStart = new Date(now() - days * DAY_MS).toISOString().slice(0, 10);
  const standin = { contract: "day-granular", deploymentStart, ...options.standin } as const;
  return setup({ workspaces: [0, 1], ...options, standin });
}

interface Requested {
  readonly meter: Meter;
  readonly range: Interval;
  readonly workspaceIds: readonly string[];
}

export function inMeterLedger(standin: Standin, { meter, range, workspaceIds }: Requested): Figures {
  const { ledger, deploymentLedger, organisation } = standin;
  const days = (range.end - range.start) / DAY_MS;
  const edges = Array.from({ length: days + 1 }, (_, i) => range.start + i * DAY_MS);
  const { tier, measures } = METER[meter];
  const figures: Figures = new Map();
  const streams = meter === "deployments" ? organisation.deploymentStreams : organisation.streams;
  for (const stream of streams) {
    const { project, user, key } = stream;
    if (!workspaceIds.includes(project.workspace.id)) continue;
    const ids: Record<GroupBy, string> = {
      workspace: project.workspace.id,
      project: project.id,
      user: user?.id ?? "",
      api_key: key?.shortKey ?? "",
    };
    for (const measure of measures) {
      const counts =
        measure === "traces"
          ? ledger.counts(stream, edges, tier === "all" ? null : tier)
          : deploymentLedger.counts(stream, edges, measure as DeploymentMeasure);
      for (const [i, amount] of counts.entries()) {
        const day = new Date(edges[i] ?? 0).toISOString().slice(0, 10);
        for (const groupBy of GROUPINGS) {
          const line = `${meter} ${measure} ${groupBy} ${day} ${project.workspace.id} ${ids[groupBy]}`;
          if (amount !== 0) figures.set(line, (figures.get(line) ?? 0) + amount);
        }
      }
    }
  }
  return figures;
}

export async function inMeterStore(
  { sql }: Pick<Bench, "sql">,
  requested?: Omit<Requested, "workspaceIds">,
): Promise<Figures> {
  const rows = await sql<{ line: string; amount: number; meter: Meter; at: Date }>(
    `SELECT concat_ws(' ', m.meter, s.measure, c.group_by, r.bucket_start, w.external_id, e.external_id) AS line,
            r.traces AS amount, m.meter, r.bucket_start::timestamp AT TIME ZONE 'UTC' AS at
     FROM usage.dated_record r
     JOIN usage.series s USING (series_id)
     JOIN usage.scope c USING (scope_id)
     JOIN usage.entity w ON w.entity_id = c.workspace_id
     JOIN usage.entity e ON e.entity_id = s.entity_id
     CROSS JOIN LATERAL usage.meter_of(c.kind, c.trace_tier) m (meter)
     WHERE c.stride = 'day' AND r.traces > 0`,
  );
  const isRequested = ({ meter, at }: (typeof rows)[number]) =>
    requested === undefined ||
    (meter === requested.meter &&
      at.getTime() >= requested.range.start &&
      at.getTime() < requested.range.end);
  return new Map(rows.filter(isRequested).map(({ line, amount }) => [line, Number(amount)]));
}

const DAYS_OF_DEPLOYMENTS = 9;

export async function setupEarlyDeployments(standin: Partial<StandinOptions> = {}) {
  const deploymentStart = new Date(now() - DAYS_OF_DEPLOYMENTS * DAY_MS).toISOString().slice(0, 10);
  return setupUnwatched({ workspaces: [], standin: { deploymentStart, ...standin } });
}

export function inMeterLedgers({ standin, dataStart, today }: Bench): Figures {
  const { organisation, access } = standin;
  const workspaceIds = organisation.workspaces.filter((one) => access.canRead(one)).map(({ id }) => id);
  const ofMeter = (meter: Meter, start: number) =>
    inMeterLedger(standin, { meter, range: { start, end: today + DAY_MS }, workspaceIds });
  return together(
    ofMeter("traces", dataStart),
    ofMeter("longlived", dataStart),
    ofMeter("deployments", today - DAYS_OF_DEPLOYMENTS * DAY_MS),
  );
}

export const knownMeters = ({ sql }: Pick<Bench, "sql">) =>
  sql<{ meter: string; state: string; evidence: string; starts_on: string | null }>(
    "SELECT meter, state, evidence, starts_on::text FROM usage.source_meter ORDER BY meter",
  );
