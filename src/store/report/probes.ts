import { sql } from "kysely";
import type { ProbeFigure, WorkspaceReading } from "../../domain/probe.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database, Store } from "../db/database.ts";

/** Traces by workspace id, read before the probe sent its first trace. */
export type Baseline = Readonly<Record<string, WorkspaceReading>>;
export type ProbeVerdict = "matched" | "differs" | "inconclusive";

/** A probe without a verdict. Instants in epoch milliseconds, by Postgres's clock. */
export interface OpenProbe {
  readonly probeId: number;
  readonly state: "sending" | "waiting";
  readonly project: string;
  readonly projectId: string | undefined;
  readonly periodStart: number;
  readonly baseline: Baseline | undefined;
  readonly expected: number;
  readonly startedAt: number;
  readonly sentAt: number | undefined;
  readonly waitUntil: number | undefined;
}

/** Enters a probe and returns its id; undefined if the source has a running probe. */
export async function enterProbe(
  db: Database,
  probe: { sourceId: number; project: string },
): Promise<number | undefined> {
  const row = await db
    .insertInto("probe")
    .values({
      source_id: probe.sourceId,
      project: probe.project,
      period_start: sql<Date>`date_trunc('day', now(), 'UTC')`,
    })
    .onConflict((conflict) =>
      conflict.columns(["source_id"]).where("state", "in", ["sending", "waiting"]).doNothing(),
    )
    .returning("probe_id")
    .executeTakeFirst();
  return row?.probe_id;
}

export async function openProbeOf(db: Database, sourceId: number): Promise<OpenProbe | undefined> {
  const row = await db
    .selectFrom("probe")
    .selectAll()
    .where("source_id", "=", sourceId)
    .where("state", "in", ["sending", "waiting"])
    .executeTakeFirst();
  return (
    row && {
      probeId: row.probe_id,
      state: row.state as OpenProbe["state"],
      project: row.project,
      projectId: row.project_id ?? undefined,
      periodStart: row.period_start.getTime(),
      baseline: (row.baseline as unknown as Baseline | null) ?? undefined,
      expected: row.expected_traces,
      startedAt: row.started_at.getTime(),
      sentAt: row.sent_at?.getTime(),
      waitUntil: row.wait_until?.getTime(),
    }
  );
}

export async function keepBaseline(
  db: Database,
  kept: { probeId: number; baseline: Baseline; projectId: string | undefined },
): Promise<void> {
  await db
    .updateTable("probe")
    .set({ baseline: JSON.stringify(kept.baseline), project_id: kept.projectId ?? null })
    .where("probe_id", "=", kept.probeId)
    .execute();
}

/** Counts traces before they are sent. */
export async function expectTraces(
  db: Database,
  expected: { probeId: number; traces: number },
): Promise<void> {
  await db
    .updateTable("probe")
    .set({ expected_traces: sql<number>`expected_traces + ${expected.traces}` })
    .where("probe_id", "=", expected.probeId)
    .where("state", "=", "sending")
    .execute();
}

/** Marks a probe as sent. From now on any process may wait for its billing. */
export async function startWaiting(
  db: Database,
  waiting: { probeId: number; withinMs: number },
): Promise<void> {
  await db
    .updateTable("probe")
    .set({
      state: "waiting",
      sent_at: sql<Date>`clock_timestamp()`,
      wait_until: sql<Date>`clock_timestamp() + make_interval(secs => ${waiting.withinMs / 1000})`,
    })
    .where("probe_id", "=", waiting.probeId)
    .where("state", "=", "sending")
    .execute();
}

export interface Conclusion {
  readonly probeId: number;
  readonly state: ProbeVerdict;
  readonly figures: readonly ProbeFigure[];
  readonly workspaceId?: string | undefined;
  readonly projectId?: string | undefined;
  /** Epoch milliseconds, by Postgres's clock. */
  readonly billedAt?: number | undefined;
  readonly code?: string | undefined;
  readonly message?: string | undefined;
}

/** Gives a probe its verdict, once. Returns false if another process was first. */
export async function concludeProbe(store: Store, end: Conclusion): Promise<boolean> {
  return store.transaction(async ({ db }) => {
    const { numUpdatedRows } = await db
      .updateTable("probe")
      .set({
        state: end.state,
        workspace_id: end.workspaceId ?? null,
        project_id: sql<string | null>`coalesce(${end.projectId ?? null}, project_id)`,
        billed_at: end.billedAt === undefined ? null : new Date(end.billedAt),
        code: end.code ?? null,
        message: end.message ?? null,
        finished_at: sql<Date>`clock_timestamp()`,
      })
      .where("probe_id", "=", end.probeId)
      .where("state", "in", ["sending", "waiting"])
      .executeTakeFirst();
    if (numUpdatedRows === 0n) return false;
    if (end.figures.length > 0) {
      await db
        .insertInto("probe_figure")
        .values(
          end.figures.map((figure) => ({
            probe_id: end.probeId,
            group_by: figure.groupBy,
            billed_traces: figure.billed,
            others_added: figure.othersAdded,
            others_removed: figure.othersRemoved,
            difference: figure.difference,
          })),
        )
        .execute();
    }
    return true;
  });
}

/** Whether traces of an earlier probe of these days may still reach the figures of this one. */
export async function hasUnsettledProbe(
  db: Database,
  before: { sourceId: number; probeId: number; days: number },
): Promise<boolean> {
  const row = await db
    .selectFrom("probe")
    .select("probe_id")
    .where("source_id", "=", before.sourceId)
    .where("probe_id", "<", before.probeId)
    .where("state", "in", ["differs", "inconclusive"])
    .where("expected_traces", ">", 0)
    .where("started_at", ">", sql<Date>`now() - make_interval(days => ${before.days})`)
    .executeTakeFirst();
  return row !== undefined;
}

/** The verdict of a probe. */
export async function conclusionOf(db: Database, probeId: number): Promise<Conclusion> {
  const row = await db
    .selectFrom("probe")
    .select(["state", "workspace_id", "project_id", "billed_at", "code", "message"])
    .where("probe_id", "=", probeId)
    .executeTakeFirstOrThrow();
  const figures = await db
    .selectFrom("probe_figure")
    .select([sql<GroupBy>`group_by`.as("groupBy"), "billed_traces as billed", "difference"])
    .select(["others_added as othersAdded", "others_removed as othersRemoved"])
    .where("probe_id", "=", probeId)
    .execute();
  return {
    probeId,
    state: row.state as ProbeVerdict,
    figures,
    workspaceId: row.workspace_id ?? undefined,
    projectId: row.project_id ?? undefined,
    billedAt: row.billed_at?.getTime(),
    code: row.code ?? undefined,
    message: row.message ?? undefined,
  };
}
