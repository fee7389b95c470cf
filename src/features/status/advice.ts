import { type Config, sourceFlagsOf } from "../../core/base/config.ts";
import { counted, withoutAddresses } from "../../core/base/printable.ts";
import { addMonths } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { METER_NAME, METER_NOT_KNOWN, meterFlags } from "../../core/domain/usage/meter.ts";
import { neverReadProblem } from "../../core/pipeline/never-read.ts";
import { type SyncBudget, type Syncing, syncBudget } from "../../core/pipeline/sync/sync-budget.ts";
import {
  type LostWorkspace,
  lostWorkspaces,
  type NamedWorkspace,
  neverRead,
} from "../../core/store/access/withdrawn-zeros.ts";
import {
  type SourceProgress,
  type SourceStatus,
  sourceProgress,
  sourceStatuses,
} from "../../core/store/activity/overview.ts";
import { lastRuns, type Run } from "../../core/store/activity/run-history.ts";
import type { Database } from "../../core/store/db/database.ts";
import { inSnapshot } from "../../core/store/db/snapshot.ts";
import { putOffTasks } from "../../core/store/work/tasks.ts";
import type { QueueSight } from "../../web/routes.ts";
import { conditionSettingsOf, factOf, type Incident, openIncidents } from "../alerts/conditions.ts";
import { type SourceTrust, trustOfSources } from "../coverage/trust.store.ts";
import type { AlertKind } from "../owners/alert-route.ts";

interface QueuesSight {
  /** Keyed by slug. Undefined: Redis shows no queues. */
  readonly sources?: ReadonlyMap<string, QueueSight> | undefined;
  /** Why Redis does not respond. Null: Redis responds or is not used. */
  readonly problem: string | null;
}

export interface SourceReport {
  readonly status: SourceStatus;
  readonly trust: SourceTrust;
  readonly progress: SourceProgress;
  readonly lastSync: Run | null;
  readonly alerts: readonly Incident[];
  readonly lostWorkspaces: readonly LostWorkspace[];
  readonly neverRead: readonly NamedWorkspace[];
  /** Null: the source is stored but not configured. */
  readonly budget: SyncBudget | null;
  /** ISO instant. Null: no schedule is known. */
  readonly nextSync: string | null;
  readonly advice: Advice;
}

interface Requested {
  readonly config: Pick<Config, "sources" | "settleAfterMs" | "hourlyForMs" | "syncEveryMs" | "meters">;
  /** Postgres's clock, epoch ms. */
  readonly now: number;
  readonly queues: QueuesSight | Promise<QueuesSight>;
  /** Removes e-mail addresses from the platform's texts. */
  readonly masked: boolean;
}

export async function reportOnSources(
  db: Database,
  { config, now, queues, masked }: Requested,
): Promise<SourceReport[]> {
  const { statuses, progresses, trusts, runs, firing, lost, unread, putOffs } = await inSnapshot(
    db,
    async (snapshot) => ({
      statuses: await sourceStatuses(snapshot),
      progresses: await sourceProgress(snapshot),
      trusts: await trustOfSources(snapshot),
      runs: await lastRuns(snapshot, "sync"),
      lost: await lostWorkspaces(snapshot),
      unread: await neverRead(snapshot),
      putOffs: await putOffTasks(snapshot, { syncEveryMs: config.syncEveryMs }),
      firing: await openIncidents(snapshot, conditionSettingsOf(config)),
    }),
  );
  const { sources, problem } = await queues;
  const shown = <T extends string | null>(words: T) =>
    masked && words !== null ? withoutAddresses(words) : words;
  return statuses.map((found): SourceReport => {
    const status = { ...found, refused: shown(found.refused) };
    const { source, refused, openDifferences } = status;
    const of = <T extends { readonly source: string }>(all: readonly T[]) =>
      all.find((one) => one.source === source);
    // One snapshot, so each list has this source.
    const known = of(trusts) as SourceTrust;
    const unknownMeters = known.unknownMeters.map((one) => ({ ...one, evidence: shown(one.evidence) }));
    const trust = { ...known, unknownMeters };
    const progress = of(progresses) as SourceProgress;
    const run = of(runs);
    const lastSync = run === undefined ? null : { ...run, reason: shown(run.reason) };
    const alerts = firing.get(source) ?? [];
    const lostOf = lost.filter((one) => one.source === source);
    const unreadOf = unread.filter((one) => one.source === source).map(({ source: _, ...one }) => one);
    const queue = sources?.get(source);
    const nextSync = queue?.nextSync === undefined ? null : new Date(queue.nextSync).toISOString();
    const advice = adviseOn({
      source,
      sourceFlags: sourceFlagsOf(config, source),
      trust,
      refused,
      // Without a schedule, syncs run by cron and need no worker.
      workers: nextSync === null ? null : (queue?.workers ?? null),
      redis: problem,
      stale: alerts.filter(({ kind }) => kind === "stale").map(factOf)[0] ?? null,
      lastSyncFailure: failureOf(lastSync),
      openDifferences,
      unread: lostOf
        .filter((one) => one.isUnread || (one.isUnlisted && one.zeros > 0))
        .map((one) => one.workspaceId),
      neverRead: unreadOf,
      unpriced: alerts.some(({ kind }) => kind === "unpriced"),
      nextSync,
    });
    const budget = budgetOf(trust, { config, now, putOff: of(putOffs) });
    return {
      ...{ status, trust, progress, lastSync, alerts, budget, nextSync, advice },
      lostWorkspaces: lostOf,
      neverRead: unreadOf,
    };
  });
}

function budgetOf(
  trust: SourceTrust,
  { config, now, putOff }: Pick<Requested, "config" | "now"> & Pick<Syncing, "putOff">,
): SyncBudget | null {
  const { source, dataStart, workspaceIds, capabilities, meters } = trust;
  const configured = config.sources.find(({ slug }) => slug === source);
  if (configured === undefined) return null;
  const syncing = {
    config: configured,
    settings: config,
    dataStart: Date.parse(dataStart),
    workspaceIds,
    capabilities: new Set(capabilities),
    meters: new Map(meters),
    strideRetries: new Set<never>(),
    putOff,
  };
  return syncBudget(syncing, now);
}

export interface Situation {
  readonly source: string;
  readonly sourceFlags: string;
  readonly trust: SourceTrust;
  /** Why the platform refuses the key. Null: it accepts the key. */
  readonly refused: string | null;
  /** Number of processes that fetch. Null: unknown. */
  readonly workers: number | null;
  readonly redis: string | null;
  /** A sentence about the time without a load. Null: that time is not too long. */
  readonly stale: string | null;
  readonly lastSyncFailure: string | null;
  readonly openDifferences: number;
  readonly unread: readonly string[];
  readonly neverRead: readonly NamedWorkspace[];
  readonly unpriced: boolean;
  readonly nextSync: string | null;
}

export interface Advice {
  readonly kind: "good" | "info" | "warn" | "bad";
  readonly sentence: string;
  readonly command: string | undefined;
  readonly href: string | undefined;
  readonly why?: string;
  /** Alerts about the same problem. `isWhole`: the alerts say nothing more than the advice. */
  readonly alerts?: { readonly kinds: readonly AlertKind[]; readonly isWhole: boolean };
}

function failureOf(lastSync: Pick<Run, "outcome" | "reason"> | null): string | null {
  const hasFailed = lastSync?.outcome === "failed" || lastSync?.outcome === "lost";
  return hasFailed ? (lastSync.reason ?? "") : null;
}

export function adviseOn(at: Situation): Advice {
  return onService(at) ?? onDays(at) ?? onFigures(at) ?? onNothing(at);
}

function whereOf({ source }: Situation): string {
  return `source=${encodeURIComponent(source)}`;
}

function onService(at: Situation): Advice | undefined {
  const { trust } = at;
  if (at.refused !== null) {
    const correct = advice("bad", "The platform refuses the key. Correct it.", `usage-etl doctor`);
    return { ...correct, alerts: said("refused") };
  }
  if (at.redis !== null) {
    return advice("bad", "Redis does not respond, so nothing is fetched. Start it.", `usage-etl doctor`);
  }
  if (at.workers === 0) {
    return advice("bad", "No process fetches. Start the service with a worker.", `usage-etl serve`);
  }
  if (at.stale !== null) {
    const why = advice("bad", `${at.stale} Find out why.`, `usage-etl status`, "/timeline");
    return { ...why, alerts: said("stale") };
  }
  if (at.lastSyncFailure !== null) {
    const again = `The last sync failed. ${at.lastSyncFailure} The next one tries again.`;
    return advice("warn", again, `usage-etl runs list`, "/timeline");
  }
  if (trust.workspaceIds.length === 0) {
    return advice(
      "info",
      "No workspace is known yet. The first sync learns them.",
      `usage-etl sync --inline`,
    );
  }
  return undefined;
}

function onDays(at: Situation): Advice | undefined {
  const { source, sourceFlags, trust } = at;
  const where = whereOf(at);
  if (trust.capabilities.includes("no_day")) {
    const none = "The server does not support days, so days cannot be loaded.";
    return advice("warn", none, `usage-etl doctor`, `/coverage?${where}`);
  }
  if (at.unread.length > 0) {
    const [first] = at.unread;
    const more = at.unread.length > 1 ? ` and ${at.unread.length - 1} more` : "";
    const give = `The key lost access to workspace ${first}${more}. Restore it: the next sync loads what is missing.`;
    return {
      ...advice("warn", give, `usage-etl doctor`, `/coverage?${where}`),
      alerts: { kinds: ["access_lost"], isWhole: false },
    };
  }
  const underWay = trust.gapDays - trust.idleDays - trust.leftOutDays - trust.neverReadDays;
  if (trust.idleDays > 0) {
    const { idleDays, failedDays, firstIdle, lastIdle } = trust;
    const more = `${underWay.toLocaleString("en-US")} more ${underWay === 1 ? "is" : "are"} being loaded.`;
    const load = `${described(idleDays)} not loaded, ${spanOf(firstIdle, lastIdle)}. Load ${them(idleDays)}.${underWay === 0 ? "" : ` ${more}`}`;
    const to = dayAfter(lastIdle);
    const query = new URLSearchParams({ source, from: firstIdle ?? "", to });
    const command = `usage-etl backfill --from ${firstIdle} --to ${to}${sourceFlags}`;
    if (failedDays === idleDays) {
      const again = `${counted(failedDays, "daily figure")} failed, ${spanOf(firstIdle, lastIdle)}. Load ${them(failedDays)} again.`;
      return { ...advice("warn", again, command, `/backfills/new?${query}`), why: `/coverage?${query}` };
    }
    return advice("warn", load, command, `/backfills/new?${query}`);
  }
  const [unknown] = trust.unknownMeters;
  if (unknown !== undefined) {
    const { meter, evidence } = unknown;
    const why = `It is not known whether the server counts ${METER_NAME[meter]}: ${evidence}. Each sync tests it again.`;
    return {
      ...advice("warn", why, `usage-etl doctor${sourceFlags}`),
      alerts: { kinds: [METER_NOT_KNOWN], isWhole: trust.unknownMeters.length === 1 },
    };
  }
  const [gap] = trust.otherGaps.filter(({ idleDays }) => idleDays > 0);
  if (gap !== undefined) {
    const { meter, idleDays, firstIdle, lastIdle } = gap;
    const load = `${described(idleDays, METER_NAME[meter])} not loaded, ${spanOf(firstIdle, lastIdle)}. Load ${them(idleDays)}.`;
    const tierFlags = ` ${meterFlags(meter)}`;
    const command = `usage-etl backfill --from ${firstIdle} --to ${dayAfter(lastIdle)}${tierFlags}${sourceFlags}`;
    return advice("warn", load, command);
  }
  const others = trust.otherGaps.reduce((sum, { requestedDays }) => sum + requestedDays, 0);
  if (underWay === 0 && others > 0) {
    const wait = `${described(others, "other usage than traces")} being loaded. Wait for them.`;
    return advice("info", wait, `usage-etl status`);
  }
  if (underWay > 0) {
    const wait = `${described(underWay)} being loaded. Wait for them.`;
    return advice("info", wait, `usage-etl status`, `/coverage?${where}`);
  }
  return undefined;
}

function onFigures(at: Situation): Advice | undefined {
  const { sourceFlags, trust } = at;
  const where = whereOf(at);
  if (at.openDifferences > 0) {
    const many = counted(at.openDifferences, "count");
    const repair = `${many} ${at.openDifferences === 1 ? "differs" : "differ"} from the export. Load ${at.openDifferences === 1 ? "it" : "them"} again.`;
    const command = `usage-etl reconcile --from ${trust.dataStart} --to ${trust.today}${sourceFlags} --repair`;
    return advice("warn", repair, command, `/differences?${where}`);
  }
  if (trust.disagreements > 0) {
    const keep = trust.disagreements === 1 ? "keeps its month" : "keep their months";
    const request = `${counted(trust.disagreements, "difference")} ${keep} open. Accept ${them(trust.disagreements)}, or ask the platform's support.`;
    return { ...advice("warn", request, undefined, `/differences?${where}`), alerts: CONTRADICTIONS };
  }
  if (at.unpriced) {
    const price = "Some usage has no price, so costs leave it out. Import prices for it.";
    const to = `/usage?${where}&measure=cost`;
    return {
      ...advice("warn", price, `usage-etl prices import FILE`, to),
      alerts: { kinds: ["unpriced"], isWhole: false },
    };
  }
  const unread = trust.neverReadDays === 0 ? undefined : neverReadProblem(at.neverRead);
  if (unread !== undefined) {
    const { message, next } = unread;
    return advice("warn", `${message} ${next}`, `usage-etl workspace list`, `/coverage?${where}`);
  }
  const month = closable(trust);
  if (month !== undefined) {
    const is = `${month} is final and reconciled`;
    const [sentence, costFlags] = trust.nextLacksPrice
      ? [`${is}, but has no price. Import prices, or close it without costs.`, " --without-costs"]
      : [`${is}. Close it.`, ""];
    const command = `usage-etl close ${month}${costFlags}${sourceFlags}`;
    return advice("info", sentence, command, `/months/${month}?${where}`);
  }
  if (trust.disagreementsSince > 0) {
    const many = counted(trust.disagreementsSince, "count");
    const request = `The platform contradicts itself on ${many} of closed months, found since they were closed. Contact its support.`;
    return { ...advice("warn", request, undefined, `/differences?${where}`), alerts: CONTRADICTIONS };
  }
  // With a schedule, the service compares days at night.
  const command = commandToProve(trust, sourceFlags);
  if (at.nextSync === null && command !== null) {
    const prove = `${trust.comparedUntil} is the first day that is final and not compared. Compare days with the export.`;
    return advice("info", prove, command, `/coverage?${where}`);
  }
  return undefined;
}

const CONTRADICTIONS: NonNullable<Advice["alerts"]> = {
  kinds: ["difference", "control_total", "provider_total"],
  isWhole: false,
};

function said(kind: AlertKind): NonNullable<Advice["alerts"]> {
  return { kinds: [kind], isWhole: true };
}

function onNothing({ nextSync, trust: { leftOutDays, monthsNotClosed, closedMonth } }: Situation): Advice {
  const next = nextSync === null ? "" : ` The next sync is at ${nextSync.slice(11, 16)}.`;
  const leftOut =
    leftOutDays === 0
      ? ""
      : ` but ${leftOutDays.toLocaleString("en-US")} daily figures that closed months leave out`;
  const earlier =
    closedMonth === null || monthsNotClosed === 0
      ? ""
      : ` ${counted(monthsNotClosed, "month")} before ${closedMonth.slice(0, 7)} ${monthsNotClosed === 1 ? "is" : "are"} not closed.`;
  return advice("good", `Nothing: every day that has ended is loaded${leftOut}.${earlier}${next}`, undefined);
}

function advice(kind: Advice["kind"], sentence: string, command: string | undefined, href?: string): Advice {
  return { kind, sentence, command, href };
}

/** The month after the newest closed one, such as 2026-03, if its days are final and reconciled. */
function closable({ reconciledUntil, nextMonth }: SourceTrust): string | undefined {
  return addMonths(nextMonth, 1) <= reconciledUntil ? nextMonth.slice(0, 7) : undefined;
}

/** Command that compares final days with the export, from the first uncompared day on. Null: all were compared. */
export function commandToProve(trust: SourceTrust, sourceFlags: string): string | null {
  const { comparedUntil, finalUntil, today } = trust;
  if (comparedUntil >= finalUntil) return null;
  return `usage-etl reconcile --from ${comparedUntil} --to ${today}${sourceFlags}`;
}

function described(days: number, what?: string): string {
  const of = what === undefined ? "" : ` of ${what}`;
  const many = days === 1 ? `daily figure${of} is` : `daily figures${of} are`;
  return `${days.toLocaleString("en-US")} ${many}`;
}

function spanOf(first: string | null, last: string | null): string {
  return first === last ? `on ${first}` : `from ${first} to ${last}`;
}

function dayAfter(day: string | null): string {
  return new Date(Date.parse(day ?? "1970-01-01") + DAY_MS).toISOString().slice(0, 10);
}

function them(count: number): string {
  return count === 1 ? "it" : "them";
}
