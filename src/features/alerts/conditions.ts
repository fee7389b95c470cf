import { createHash } from "node:crypto";
import type { Config } from "../../core/base/config.ts";
import { counted, printableLine } from "../../core/base/printable.ts";
import { describeRestatements } from "../../core/domain/proof/restatement.ts";
import { METER_NAME, METER_NOT_KNOWN } from "../../core/domain/usage/meter.ts";
import type { Database } from "../../core/store/db/database.ts";
import { describeUnpriced } from "../costs/price.ts";
import { describeLimit, type LimitUse, marksPassed } from "../costs/usage-limit.ts";
import { describeAll, ofLastWeeks, type UnusualOfWorkspace, unusualLately } from "../figures/unusual.ts";
import type { AlertKind, Severity } from "../owners/alert-route.ts";
import {
  type CurrentBudgets,
  currentBudgets,
  describeBudget,
  isWarned,
  type MonthBudget,
} from "../owners/budgets.ts";
import { type AlertFacts, alertFacts } from "./alert-facts.store.ts";

/** A condition that fires is an incident. */

/** Stale after four syncs without a load, but not within an hour: one slow load is no incident. */
const STALE_AFTER_SYNCS = 4;
const STALE_AFTER_MS = 3_600_000;

export interface ConditionSettings {
  /** The source that has the budgets of all sources, so that they are sent once. */
  readonly firstSource: string | undefined;
  readonly staleAfterMs: number;
}

export function conditionSettingsOf({
  sources,
  syncEveryMs,
}: Pick<Config, "sources" | "syncEveryMs">): ConditionSettings {
  return {
    firstSource: sources[0]?.slug,
    staleAfterMs: Math.max(STALE_AFTER_SYNCS * syncEveryMs, STALE_AFTER_MS),
  };
}

export interface Incident
  extends Pick<Condition, "kind" | "owner" | "severity" | "count" | "newest" | "message"> {
  /** Stays the same until the incident ends. */
  readonly incident: string;
}

export function idOf(...parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}

/** The message without the view or command at its end, for places with a link. */
export function factOf({ message }: Pick<Incident, "message">): string {
  return message.replace(
    / See (reporting(?:_detail)?\.\w+|usage-etl [a-z ]*(budgets|status|invoice list))\.$/,
    "",
  );
}

const PAGES_OF: Partial<Record<AlertKind, [path: string, fields?: Readonly<Record<string, string>>]>> = {
  difference: ["/differences", { says: "export" }],
  control_total: ["/differences", { says: "total" }],
  provider_total: ["/differences", { says: "total" }],
  final_changed: ["/differences", { says: "restatement" }],
  budget: ["/owners"],
  unusual: ["/usage", { by: "project" }],
  invoice_open: ["/invoices"],
  invoice_missing: ["/invoices"],
};

/** Page of the cause. Undefined: the overview shows the alert itself. */
export function pageOf(kind: AlertKind, source: string): string | undefined {
  const [path, fields] = PAGES_OF[kind] ?? [];
  return path === undefined ? undefined : `${path}?${new URLSearchParams({ source, ...fields })}`;
}

export async function openIncidents(
  db: Database,
  settings: ConditionSettings,
): Promise<ReadonlyMap<string, readonly Incident[]>> {
  const { sources, failure } = await readConditions(db, settings);
  if (failure !== undefined) throw failure;
  return new Map(
    sources.map(({ source, conditions }) => [
      source,
      conditions.filter(({ isFiring }) => isFiring).map((one) => incidentOf(source, one)),
    ]),
  );
}

function incidentOf(source: string, { kind, owner, severity, count, newest, message }: Condition): Incident {
  return { kind, owner, severity, count, newest, message, incident: idOf(source, kind, owner) };
}

export interface Condition {
  readonly kind: AlertKind;
  readonly owner: string | null;
  readonly isFiring: boolean;
  readonly severity: Severity;
  /** If `count` or `newest` grows, routes are notified again. */
  readonly count: number;
  readonly newest: number;
  /** The incident ends only once `newest` has grown, because its cause (a forecast) may come and go. Default: false. */
  readonly isHeld?: boolean;
  readonly message: string;
  readonly over: string;
}

interface Read extends ConditionSettings {
  readonly sourceId?: number;
  /** Incidents that routes were notified of. Their owners get a condition even if it does not fire. */
  readonly open?: readonly Pick<Condition, "kind" | "owner">[];
}

interface SourceConditions {
  readonly source: string;
  /** Postgres's clock, exact. */
  readonly readAt: string;
  readonly conditions: readonly Condition[];
}

/** If budgets or unusual days cannot be read, they are left out, and `failure` has the error. */
export async function readConditions(
  db: Database,
  { sourceId, ...settings }: Read,
): Promise<{ sources: SourceConditions[]; failure: unknown }> {
  let failure: unknown;
  const leaveOut = (error: unknown) => {
    failure ??= error;
    return undefined;
  };
  const facts = await alertFacts(db, sourceId);
  const budgets = await currentBudgets(db).catch(leaveOut);
  const unusual = await unusualLately(db).catch(leaveOut);
  const sources = facts.map((one) => ({
    source: one.source,
    readAt: one.readAt,
    conditions: conditionsOf(one, { ...settings, budgets, unusual }),
  }));
  return { sources, failure };
}

function conditionsOf(
  facts: AlertFacts,
  {
    firstSource,
    staleAfterMs,
    budgets,
    unusual,
    open = [],
  }: Omit<Read, "sourceId"> & {
    readonly budgets: CurrentBudgets | undefined;
    readonly unusual: readonly UnusualOfWorkspace[] | undefined;
  },
): Condition[] {
  const { source, now, limits, unpriced } = facts;
  const all: Condition[] = [
    ...ofProof(facts),
    ...ofLoading(facts, staleAfterMs),
    limitCondition(limits),
    ...(budgets === undefined
      ? []
      : byOwner(
          "budget",
          budgets.budgets.filter((one) => (one.source ?? firstSource) === source),
          ({ of }) => (of?.kind === "owner" ? of.id : null),
          open,
        ).map(([owner, own]) => ({ ...budgetCondition({ ...budgets, budgets: own }), owner }))),
    ...(unusual === undefined
      ? []
      : byOwner("unusual", ofLastWeeks(unusual, source, now), ({ owner }) => owner, open).map(
          ([owner, own]) => ({ ...unusualCondition(own), owner }),
        )),
    found(
      "unpriced",
      { count: unpriced.days, newest: Date.parse(unpriced.lastDay ?? "1970-01-01") },
      describeUnpriced(unpriced) ?? "",
      "every loaded day with usage has a price, or no prices are stored",
    ),
  ];
  // Names may hold control characters.
  return all.map((one) => ({ ...one, message: printableLine(one.message) }));
}

function ofProof({ differences, controlTotals, providerTotals, finalChanges }: AlertFacts): Condition[] {
  return [
    found(
      "difference",
      differences,
      `${counted(differences.count, "count")} ${differences.count === 1 ? "differs" : "differ"} between the platform's JSON and its CSV export, after a second request. See reporting_detail.usage_reconciliation.`,
      "JSON and CSV export agree again",
    ),
    found(
      "control_total",
      controlTotals,
      `${counted(controlTotals.count, "total")} of the platform ${isNo("sum", controlTotals.count)} of its days or of its retention tiers, after a second request. See reporting_detail.usage_reconciliation.`,
      "all totals are the sums of their days and of their retention tiers again",
    ),
    found(
      "provider_total",
      providerTotals,
      `${counted(providerTotals.count, "monthly total")} of the billing provider ${isNo("stored sum", providerTotals.count)}, after a second request. See reporting_detail.usage_reconciliation.`,
      "the billing provider's totals are the stored sums again",
    ),
    found(
      "final_changed",
      {
        count: finalChanges.reduce((sum, one) => sum + one.restatements, 0),
        newest: Math.max(0, ...finalChanges.map((one) => one.newest)),
      },
      `${describeRestatements(finalChanges)} changed in the last day. See reporting_detail.usage_restatement.`,
      "no final figure changed for a day",
    ),
  ];
}

/** Syncs first retry a server that fails briefly. */
const UNKNOWN_AFTER_S = 3600;

function ofLoading(
  {
    secondsWithoutLoad,
    isRefused,
    lostWorkspaces,
    invalidatedZeros,
    unloadedWorkspaces,
    openInvoices,
    isInvoiceMissing,
    unknownMeters,
  }: AlertFacts,
  staleAfterMs: number,
): Condition[] {
  const hours = Math.floor(secondsWithoutLoad / 3600);
  const unknown = unknownMeters.filter(({ seconds }) => seconds > UNKNOWN_AFTER_S);
  return [
    found(
      "stale",
      once(secondsWithoutLoad * 1000 > staleAfterMs),
      `Nothing was loaded for ${hours > 0 ? `${hours} h` : `${Math.floor(secondsWithoutLoad / 60)} min`}. See usage-etl status.`,
      "usage is loaded again",
    ),
    found(
      "refused",
      once(isRefused),
      "The platform refuses the key. See usage-etl status.",
      "the platform accepts the key again",
    ),
    found(
      "access_lost",
      lostWorkspaces,
      describeLost(lostWorkspaces.ids, invalidatedZeros),
      "the key has access to every known workspace again, and the unverified days are loaded",
    ),
    found(
      "workspace_unloaded",
      unloadedWorkspaces,
      `The platform counts ${counted(unloadedWorkspaces.traces, "trace")} of ${counted(unloadedWorkspaces.count, "workspace")} that no sync loads. See usage-etl bill.`,
      "every workspace with usage is loaded",
    ),
    found(
      "invoice_open",
      openInvoices,
      `${counted(openInvoices.count, "invoice")} with a difference that nothing explains and nobody has accepted. See usage-etl invoice list.`,
      "each invoice is explained or settled",
    ),
    found(
      "invoice_missing",
      once(isInvoiceMissing),
      "No invoice was imported that was issued this month. Import it with usage-etl invoice import.",
      "an invoice that was issued this month is imported",
    ),
    found(
      METER_NOT_KNOWN,
      { count: unknown.length, newest: Math.max(0, ...unknown.map(({ since }) => Date.parse(since))) },
      `It is not known whether the server counts ${unknown.map(({ meter }) => METER_NAME[meter]).join(", ")}, so none of that is loaded. See usage-etl doctor.`,
      "for all usage it is known whether the server counts it",
    ),
  ];
}

function isNo(what: string, many: number): string {
  return many === 1 ? `is not the ${what}` : `are not the ${what}s`;
}

/** Groups by owner. Null and the owners of open incidents get a group even if it is empty. */
function byOwner<T>(
  kind: AlertKind,
  all: readonly T[],
  ownerOf: (one: T) => string | null,
  open: readonly Pick<Condition, "kind" | "owner">[],
): [owner: string | null, own: readonly T[]][] {
  const groups = Map.groupBy(all, ownerOf);
  const owners = [...groups.keys(), ...open.filter((one) => one.kind === kind).map(({ owner }) => owner)];
  return [...new Set([null, ...owners])].map((owner) => [owner, groups.get(owner) ?? []]);
}

/** A condition that is on or off never grows. */
function once(isOn: boolean) {
  return { count: isOn ? 1 : 0, newest: 0 };
}

const MOST_NAMED = 5;

function describeLost(ids: readonly string[], zeros: number): string {
  const more = ids.length > MOST_NAMED ? ` and ${ids.length - MOST_NAMED} more` : "";
  const withdrawn = zeros > 0 ? ` ${zeros} zero values are no longer trusted.` : "";
  return `The key lost access to workspace ${ids.slice(0, MOST_NAMED).join(", ")}${more}.${withdrawn} See usage-etl status.`;
}

function found(
  kind: AlertKind,
  { count, newest }: AlertFacts["differences"],
  message: string,
  over: string,
): Condition {
  return { kind, owner: null, isFiring: count > 0, severity: "critical", count, newest, message, over };
}

/** Grows when a limit passes a mark, and when a month begins. */
export function limitCondition(limits: readonly LimitUse[]): Condition {
  const warned = limits.filter((one) => one.isRejecting || marksPassed(one) > 0);
  const isReached = warned.some(
    (one) => one.isRejecting || (one.percent ?? 0) >= 100 || one.reachedOn !== null,
  );
  return {
    kind: "usage_limit",
    owner: null,
    isFiring: warned.length > 0,
    severity: isReached ? "critical" : "warning",
    count: warned.reduce((sum, one) => sum + marksPassed(one) + (one.isRejecting ? 1 : 0), 0),
    newest: Math.max(0, ...warned.map(({ month }) => Date.parse(month))),
    message: `${warned.map(describeLimit).join(" ")} See reporting_detail.usage_limit.`,
    over: "no usage limit is used by half",
  };
}

/**
 * One condition for an owner's budgets. It grows when a budget passes a mark or will be used up, in a new period, and when the
 * budgets change. It ends only in a new period or after a change.
 */
export function budgetCondition({ budgets, changedAt }: CurrentBudgets): Condition {
  const warned = budgets.filter(isWarned);
  const isUsedUp = warned.some(({ reached }) => reached !== null);
  const starts = budgets.flatMap(({ period }) => (period === null ? [] : Date.parse(period.from)));
  return {
    kind: "budget",
    owner: null,
    isFiring: warned.length > 0,
    severity: isUsedUp ? "critical" : "warning",
    count: warned.reduce((sum, one) => sum + weightOf(one), 0),
    newest: Math.max(changedAt, ...starts),
    isHeld: true,
    message: `${warned.map(describeBudget).join(" ")} See usage-etl owners budgets.`,
    over: "no budget has passed a mark in its month or billing period",
  };
}

function unusualCondition(days: readonly UnusualOfWorkspace[]): Condition {
  return {
    ...found(
      "unusual",
      { count: days.length, newest: Math.max(0, ...days.map(({ day }) => Date.parse(day))) },
      `Unusual days. ${describeAll(days)} See reporting.fct_usage_project_daily.`,
      "no loaded day of the last two weeks is unusual",
    ),
    severity: "warning",
  };
}

/** A passed mark counts double, so the end of a forecast hides no mark. */
function weightOf({ passed, warnAt, reached }: MonthBudget): number {
  return 2 * warnAt.filter((mark) => mark <= (passed ?? 0)).length + (reached === null ? 0 : 1);
}
