import { type RawBuilder, sql } from "kysely";
import type { ProbeFigure, ProbeReadings, ProbeSender, WorkspaceReading } from "../../domain/proof/probe.ts";
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
  const { sourceId, project, sender } = probe;
  const { rows } = await sql<{ id: number }>`
    insert into usage.probe (source_id, project, expected_user, expected_key, period_start)
    values (${sourceId}, ${project}, ${sender.user}, ${sender.key}, date_trunc('day', now(), 'UTC'))
    on conflict (source_id) where state in ('sending', 'waiting') do nothing
    returning probe_id as id
  `.execute(db);
  return rows[0]?.id;
}

export async function openProbeOf(db: Database, sourceId: number): Promise<OpenProbe | undefined> {
  const { rows } = await sql<OpenRow>`
    select probe_id as "probeId", state, project, project_id as "projectId", period_start as "periodStart", baseline,
           expected_user as user, expected_key as key, expected_traces as expected, started_at as "startedAt",
           sent_at as "sentAt", wait_until as "waitUntil", coalesce(settle_for_ms, 0) as "settleForMs",
           late_after_ms as "lateAfterMs", ${TIMING}
    from usage.probe where source_id = ${sourceId} and state in ('sending', 'waiting')
  `.execute(db);
  const [row] = rows;
  if (row === undefined) return undefined;
  const { probeId, state, project, baseline, expected, settleForMs } = row;
  return {
    probeId,
    state,
    project,
    expected,
    settleForMs,
    projectId: row.projectId ?? undefined,
    periodStart: row.periodStart.getTime(),
    baseline: baseline === null ? undefined : fromStored(baseline),
    sender: { user: row.user, key: row.key },
    startedAt: row.startedAt.getTime(),
    sentAt: row.sentAt?.getTime(),
    waitUntil: row.waitUntil?.getTime(),
    lateAfterMs: row.lateAfterMs ?? undefined,
    timing: timingOf(row),
  };
}

const TIMING = sql`first_billed_at as "firstBilledAt", unbilled_at as "unbilledAt", billed_at as "billedAt"`;
type TimingRow = Record<keyof ProbeTiming, Date | null>;

interface OpenRow
  extends Pick<OpenProbe, "probeId" | "state" | "project" | "expected" | "settleForMs">,
    TimingRow {
  readonly projectId: string | null;
  readonly periodStart: Date;
  readonly baseline: unknown;
  readonly user: ProbeSender["user"];
  readonly key: ProbeSender["key"];
  readonly startedAt: Date;
  readonly sentAt: Date | null;
  readonly waitUntil: Date | null;
  readonly lateAfterMs: number | null;
}

function timingOf(row: TimingRow): ProbeTiming {
  return {
    firstBilledAt: row.firstBilledAt?.getTime(),
    unbilledAt: row.unbilledAt?.getTime(),
    billedAt: row.billedAt?.getTime(),
  };
}

/** What follows `set`. */
function setTiming({ firstBilledAt, unbilledAt, billedAt }: ProbeTiming): RawBuilder<unknown> {
  const at = (instant: number | undefined) => (instant === undefined ? null : new Date(instant));
  return sql`first_billed_at = ${at(firstBilledAt)}, unbilled_at = ${at(unbilledAt)}, billed_at = ${at(billedAt)}`;
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
  const { rows } = await sql<{ at: Date; traces: number }>`
    select coalesce(sent_at, started_at) as at, expected_traces as traces
    from usage.probe join usage.source using (source_id)
    where slug = ${slug} and expected_traces > 0 order by probe_id
  `.execute(db);
  return rows.map(({ at, traces }) => ({ at: at.getTime(), traces }));
}

export async function keepBaseline(
  db: Database,
  kept: { probeId: number; baseline: ProbeReadings; projectId: string | undefined },
): Promise<void> {
  const baseline = JSON.stringify(Object.fromEntries(kept.baseline));
  await sql`
    update usage.probe set baseline = ${baseline}, project_id = ${kept.projectId ?? null} where probe_id = ${kept.probeId}
  `.execute(db);
}

/** Counts traces before they are sent. */
export async function expectTraces(
  db: Database,
  expected: { probeId: number; traces: number },
): Promise<void> {
  const { probeId, traces } = expected;
  await sql`
    update usage.probe set expected_traces = expected_traces + ${traces}
    where probe_id = ${probeId} and state = 'sending'
  `.execute(db);
}

/** Marks a probe as sent. From now on any process may wait for its billing. */
export async function startWaiting(
  db: Database,
  waiting: { probeId: number; withinMs: number; settleForMs: number; lateAfterMs?: number | undefined },
): Promise<void> {
  const { probeId, withinMs, settleForMs, lateAfterMs = null } = waiting;
  await sql`
    update usage.probe
    set state = 'waiting', settle_for_ms = ${settleForMs}, late_after_ms = ${lateAfterMs},
        -- In milliseconds, as all that is compared with it.
        sent_at = date_trunc('milliseconds', clock_timestamp()),
        wait_until = clock_timestamp() + make_interval(secs => ${withinMs / 1000})
    where probe_id = ${probeId} and state = 'sending'
  `.execute(db);
}

/** Keeps what was seen, so that another process goes on from it. */
export async function keepTiming(
  db: Database,
  { probeId, ...timing }: { probeId: number } & ProbeTiming,
): Promise<void> {
  await sql`
    update usage.probe set ${setTiming(timing)} where probe_id = ${probeId} and state = 'waiting'
  `.execute(db);
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
    const {
      probeId,
      state,
      workspaceId = null,
      projectId = null,
      code = null,
      message = null,
      figures,
    } = end;
    const { numAffectedRows } = await sql`
      update usage.probe
      set state = ${state}, workspace_id = ${workspaceId}, project_id = coalesce(${projectId}, project_id),
          ${setTiming(end)}, code = ${code}, message = ${message}, finished_at = clock_timestamp()
      where probe_id = ${probeId} and state in ('sending', 'waiting')
    `.execute(db);
    if (numAffectedRows === 0n) return false;
    for (const { groupBy, expectedId, rises, billed, othersAdded, othersRemoved, difference } of figures) {
      await sql`
        insert into usage.probe_figure (probe_id, group_by, expected_id, rises, billed_traces, others_added, others_removed, difference)
        values (${probeId}, ${groupBy}, ${expectedId}, ${JSON.stringify(rises)}, ${billed}, ${othersAdded}, ${othersRemoved}, ${difference})
      `.execute(db);
    }
    return true;
  });
}

/** Whether traces of an earlier probe of these days may still reach the figures of this one. */
export async function hasUnsettledProbe(
  db: Database,
  before: { sourceId: number; probeId: number; days: number },
): Promise<boolean> {
  const { rows } = await sql`
    select from usage.probe
    where source_id = ${before.sourceId} and probe_id < ${before.probeId} and state in ('differs', 'inconclusive')
      and billed_at is null and expected_traces > 0 and started_at > now() - make_interval(days => ${before.days})
    limit 1
  `.execute(db);
  return rows.length > 0;
}

type ConcludedRow = { readonly state: ProbeVerdict } & TimingRow &
  Record<"workspaceId" | "projectId" | "code" | "message", string | null>;

/** The verdict of a probe. */
export async function conclusionOf(db: Database, probeId: number): Promise<Conclusion> {
  const { rows } = await sql<ConcludedRow>`
    select state, workspace_id as "workspaceId", project_id as "projectId", code, message, ${TIMING}
    from usage.probe where probe_id = ${probeId}
  `.execute(db);
  const { rows: figures } = await sql<ProbeFigure>`
    select group_by as "groupBy", billed_traces as billed, difference, others_added as "othersAdded",
           others_removed as "othersRemoved", expected_id as "expectedId", coalesce(rises, '[]') as rises
    from usage.probe_figure where probe_id = ${probeId}
  `.execute(db);
  const row = rows[0] as ConcludedRow;
  return {
    probeId,
    state: row.state,
    figures,
    ...timingOf(row),
    workspaceId: row.workspaceId ?? undefined,
    projectId: row.projectId ?? undefined,
    code: row.code ?? undefined,
    message: row.message ?? undefined,
  };
}
