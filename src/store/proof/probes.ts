import { sql } from "kysely";
import type { ProbeFigure, ProbeReadings, ProbeSender, WorkspaceReading } from "../../domain/proof/probe.ts";
import type { GroupBy } from "../../domain/usage/record.ts";
import type { Database, Store } from "../db/database.ts";

export type ProbeVerdict = "matched" | "late" | "differs" | "inconclusive";

/** When billing was seen. Instants in epoch milliseconds, by Postgres's clock. */
export interface ProbeTiming {
  /** After the first answer that held some of it. */
  readonly firstBilledAt?: number | undefined;
  /** Before the last request whose answer lacked some of it. */
  readonly unbilledAt?: number | undefined;
  /** After the first answer that held all of it, where it stayed so since. */
  readonly billedAt?: number | undefined;
}

/** A probe without a verdict. Instants in epoch milliseconds, by Postgres's clock. */
export interface OpenProbe {
  readonly probeId: number;
  readonly state: "sending" | "waiting";
  readonly project: string;
  readonly projectId: string | undefined;
  readonly periodStart: number;
  /** Read before the first trace was sent. Undefined until then. */
  readonly baseline: ProbeReadings | undefined;
  readonly sender: ProbeSender;
  readonly expected: number;
  readonly startedAt: number;
  readonly sentAt: number | undefined;
  readonly waitUntil: number | undefined;
  readonly settleForMs: number;
  readonly lateAfterMs: number | undefined;
  readonly timing: ProbeTiming;
}

/** Enters a probe and returns its id; undefined if the source has a running probe. */
export async function enterProbe(
  db: Database,
  probe: { sourceId: number; project: string; sender: ProbeSender },
): Promise<number | undefined> {
  const row = await db
    .insertInto("probe")
    .values({
      source_id: probe.sourceId,
      project: probe.project,
      expected_user: probe.sender.user,
      expected_key: probe.sender.key,
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
      baseline: row.baseline === null ? undefined : fromStored(row.baseline),
      sender: { user: row.expected_user, key: row.expected_key },
      expected: row.expected_traces,
      startedAt: row.started_at.getTime(),
      sentAt: row.sent_at?.getTime(),
      waitUntil: row.wait_until?.getTime(),
      settleForMs: row.settle_for_ms ?? 0,
      lateAfterMs: row.late_after_ms ?? undefined,
      timing: timingOf(row),
    }
  );
}

type TimingRow = Record<"first_billed_at" | "unbilled_at" | "billed_at", Date | null>;

function timingOf(row: TimingRow): ProbeTiming {
  return {
    firstBilledAt: row.first_billed_at?.getTime(),
    unbilledAt: row.unbilled_at?.getTime(),
    billedAt: row.billed_at?.getTime(),
  };
}

function toTimingRow({ firstBilledAt, unbilledAt, billedAt }: ProbeTiming): TimingRow {
  const at = (instant: number | undefined) => (instant === undefined ? null : new Date(instant));
  return { first_billed_at: at(firstBilledAt), unbilled_at: at(unbilledAt), billed_at: at(billedAt) };
}

/** Readings are stored as an object by workspace. */
function fromStored(stored: unknown): ProbeReadings {
  return new Map(Object.entries(stored as Record<string, WorkspaceReading>));
}

/** The traces that all probes of a source have sent, each at one instant, epoch milliseconds. */
export async function sentByProbes(
  db: Database,
  slug: string,
): Promise<{ readonly at: number; readonly traces: number }[]> {
  const rows = await db
    .selectFrom("probe")
    .innerJoin("source", "source.source_id", "probe.source_id")
    .select(["started_at", "sent_at", "expected_traces"])
    .where("slug", "=", slug)
    .where("expected_traces", ">", 0)
    .orderBy("probe_id")
    .execute();
  return rows.map((row) => ({
    at: (row.sent_at ?? row.started_at).getTime(),
    traces: row.expected_traces,
  }));
}

export async function keepBaseline(
  db: Database,
  kept: { probeId: number; baseline: ProbeReadings; projectId: string | undefined },
): Promise<void> {
  await db
    .updateTable("probe")
    .set({ baseline: JSON.stringify(Object.fromEntries(kept.baseline)), project_id: kept.projectId ?? null })
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
  waiting: { probeId: number; withinMs: number; settleForMs: number; lateAfterMs?: number | undefined },
): Promise<void> {
  await db
    .updateTable("probe")
    .set({
      state: "waiting",
      // In milliseconds, as all that is compared with it.
      sent_at: sql<Date>`date_trunc('milliseconds', clock_timestamp())`,
      wait_until: sql<Date>`clock_timestamp() + make_interval(secs => ${waiting.withinMs / 1000})`,
      settle_for_ms: waiting.settleForMs,
      late_after_ms: waiting.lateAfterMs ?? null,
    })
    .where("probe_id", "=", waiting.probeId)
    .where("state", "=", "sending")
    .execute();
}

/** Keeps what was seen, so that another process goes on from it. */
export async function keepTiming(
  db: Database,
  { probeId, ...timing }: { probeId: number } & ProbeTiming,
): Promise<void> {
  await db
    .updateTable("probe")
    .set(toTimingRow(timing))
    .where("probe_id", "=", probeId)
    .where("state", "=", "waiting")
    .execute();
}

export interface Conclusion extends ProbeTiming {
  readonly probeId: number;
  readonly state: ProbeVerdict;
  readonly figures: readonly ProbeFigure[];
  readonly workspaceId?: string | undefined;
  readonly projectId?: string | undefined;
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
        ...toTimingRow(end),
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
            expected_id: figure.expectedId,
            rises: JSON.stringify(figure.rises),
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
    .where("billed_at", "is", null)
    .where("expected_traces", ">", 0)
    .where("started_at", ">", sql<Date>`now() - make_interval(days => ${before.days})`)
    .executeTakeFirst();
  return row !== undefined;
}

/** The verdict of a probe. */
export async function conclusionOf(db: Database, probeId: number): Promise<Conclusion> {
  const row = await db
    .selectFrom("probe")
    .select(["state", "workspace_id", "project_id", "code", "message"])
    .select(["first_billed_at", "unbilled_at", "billed_at"])
    .where("probe_id", "=", probeId)
    .executeTakeFirstOrThrow();
  const figures = await db
    .selectFrom("probe_figure")
    .select([sql<GroupBy>`group_by`.as("groupBy"), "billed_traces as billed", "difference"])
    .select(["others_added as othersAdded", "others_removed as othersRemoved"])
    .select(["expected_id as expectedId", sql<ProbeFigure["rises"]>`coalesce(rises, '[]')`.as("rises")])
    .where("probe_id", "=", probeId)
    .execute();
  return {
    probeId,
    state: row.state as ProbeVerdict,
    figures,
    workspaceId: row.workspace_id ?? undefined,
    projectId: row.project_id ?? undefined,
    ...timingOf(row),
    code: row.code ?? undefined,
    message: row.message ?? undefined,
  };
}
