import { createHash } from "node:crypto";
import type { Config } from "../../config/config.ts";
import type { AlertKind, Severity } from "../../domain/bill/alert-route.ts";
import { describeUnpriced } from "../../domain/bill/price.ts";
import { describeLimit, type LimitUse, marksPassed } from "../../domain/bill/usage-limit.ts";
import { counted, printableLine } from "../../printable.ts";
import { type AlertFacts, alertFacts } from "../../store/activity/alerts.ts";
import type { Database } from "../../store/db/database.ts";
import {
  type CurrentBudgets,
  currentBudgets,
  describeBudget,
  isWarned,
  type MonthBudget,
} from "../bill/budgets.ts";
import { describeAll, ofLastWeeks, type UnusualOfWorkspace, unusualLately } from "../unusual.ts";

/** What somebody has to know of a source: which incidents there are, and which are over. */

/** A source is stale after so many syncs without a load, but not before an hour. */
const STALE_AFTER_SYNCS = 4;
const STALE_AFTER_MS = 3_600_000;

export interface ConditionSettings {
  /** Tells what is of no source. One that the configuration names no more tells nothing. */
  readonly firstSource: string | undefined;
  /** Time without a load after which a source is stale. */
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

export interface FiringAlert
  extends Pick<Condition, "kind" | "owner" | "severity" | "count" | "newest" | "message"> {
  /** Its id: the same from the beginning of an incident to its end. */
  readonly incident: string;
}

export function idOf(...parts: readonly unknown[]): string {
  return createHash("sha256").update(JSON.stringify(parts)).digest("hex").slice(0, 32);
}

/** Its message without the view or command at the end, which is for those who have no page. */
export function factOf({ message }: Pick<FiringAlert, "message">): string {
  return message.replace(/ See (reporting(?:_detail)?\.\w+|usage-etl [a-z ]*(budgets|status))\.$/, "");
}

const PAGES_OF: Partial<Record<AlertKind, [path: string, fields?: Readonly<Record<string, string>>]>> = {
  difference: ["/differences", { says: "export" }],
  control_total: ["/differences", { says: "total" }],
  provider_total: ["/differences", { says: "total" }],
  final_changed: ["/differences", { says: "restatement" }],
  budget: ["/owners"],
  unusual: ["/usage", { by: "project" }],
};

/** The page that answers an alert of a source; undefined: the overview, which shows the alert itself. */
export function pageOf(kind: AlertKind, source: string): string | undefined {
  const [path, fields] = PAGES_OF[kind] ?? [];
  return path === undefined ? undefined : `${path}?${new URLSearchParams({ source, ...fields })}`;
}

/** The alerts of each source (by slug) that apply now, whether anybody was told them or not. */
export async function firingAlerts(
  db: Database,
  settings: ConditionSettings,
): Promise<ReadonlyMap<string, readonly FiringAlert[]>> {
  const [budgets, unusual] = [await currentBudgets(db), await unusualLately(db)];
  return new Map(
    (await alertFacts(db)).map((facts) => {
      const firing = conditions(facts, { ...settings, budgets, unusual }).filter(({ isFiring }) => isFiring);
      return [facts.source, firing.map((one) => firingAlert(facts.source, one))];
    }),
  );
}

function firingAlert(
  source: string,
  { kind, owner, severity, count, newest, message }: Condition,
): FiringAlert {
  return { kind, owner, severity, count, newest, message, incident: idOf(source, kind, owner) };
}

/** An incident that there is, or is not. */
export interface Condition {
  readonly kind: AlertKind;
  /** Whose it is; null: nobody's. */
  readonly owner: string | null;
  readonly isFiring: boolean;
  /** A warning: nobody has to do anything, as where a limit is more than half used, and not reached this month. */
  readonly severity: Severity;
  /** It is told again where either grows. */
  readonly count: number;
  readonly newest: number;
  /** It is over only where `newest` has grown: what it follows from may come and go. Default false. */
  readonly isHeld?: boolean;
  readonly message: string;
  readonly over: string;
}

/** Incidents of owners, by kind. */
export type OwnersTold = readonly { readonly kind: string; readonly owner: string | null }[];

/**
 * The incidents of a source, those that are over too: of each owner in `told`. What cannot be read says nothing and holds up no other:
 * its error is `failure`.
 */
export async function currentConditions(
  db: Database,
  { sourceId, told, ...settings }: { sourceId: number; told: OwnersTold } & ConditionSettings,
): Promise<{ conditions: Condition[]; readAt: string; failure: unknown }> {
  let failure: unknown;
  const orNothing = (error: unknown) => {
    failure = error;
    return undefined;
  };
  const [facts] = await alertFacts(db, sourceId);
  if (facts === undefined) return { conditions: [], readAt: "-infinity", failure };
  const budgets = await currentBudgets(db).catch(orNothing);
  const unusual = await unusualLately(db).catch(orNothing);
  return {
    conditions: conditions(facts, { ...settings, told, budgets, unusual }),
    readAt: facts.readAt,
    failure,
  };
}

function conditions(
  facts: AlertFacts,
  {
    firstSource,
    staleAfterMs,
    budgets,
    unusual,
    told = [],
  }: ConditionSettings & {
    readonly budgets: CurrentBudgets | undefined;
    readonly unusual: readonly UnusualOfWorkspace[] | undefined;
    readonly told?: OwnersTold;
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
          told,
        ).map(([owner, own]) => ({ ...budgetCondition({ ...budgets, budgets: own }), owner }))),
    ...(unusual === undefined
      ? []
      : byOwner("unusual", ofLastWeeks(unusual, source, now), ({ owner }) => owner, told).map(
          ([owner, own]) => ({ ...unusualCondition(own), owner }),
        )),
    found(
      "unpriced",
      { count: unpriced.days, newest: Date.parse(unpriced.lastDay ?? "1970-01-01") },
      describeUnpriced(unpriced) ?? "",
      "every loaded day with usage has a price, or no prices are stored",
    ),
  ];
  // Some name what people have named.
  return all.map((one) => ({ ...one, message: printableLine(one.message) }));
}

/** Of what is stored: it differs from what the platform says elsewhere, or changed late. */
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
      finalChanges,
      `${counted(finalChanges.count, "final count")} changed in the last day. See reporting_detail.usage_restatement.`,
      "no final count changed for a day",
    ),
  ];
}

/** Of what keeps usage from being loaded. */
function ofLoading(
  { quietSeconds, isRefused, lostWorkspaces, withdrawnZeros }: AlertFacts,
  staleAfterMs: number,
): Condition[] {
  const hours = Math.floor(quietSeconds / 3600);
  return [
    {
      ...CRITICAL,
      kind: "stale",
      isFiring: quietSeconds * 1000 > staleAfterMs,
      ...ONCE,
      message: `Nothing was loaded for ${hours > 0 ? `${hours} h` : `${Math.floor(quietSeconds / 60)} min`}. See usage-etl status.`,
      over: "usage is loaded again",
    },
    {
      ...CRITICAL,
      kind: "refused",
      isFiring: isRefused,
      ...ONCE,
      message: "The platform refuses the key. See usage-etl status.",
      over: "the platform takes the key again",
    },
    found(
      "access_lost",
      lostWorkspaces,
      describeLost(lostWorkspaces.ids, withdrawnZeros),
      "the key has access to every known workspace again, and what was withdrawn is loaded",
    ),
  ];
}

function isNo(what: string, many: number): string {
  return many === 1 ? `is not the ${what}` : `are not the ${what}s`;
}

/** What is of each owner: of nobody, of those who have any, and of those who were told of some. */
function byOwner<T>(
  kind: AlertKind,
  all: readonly T[],
  ownerOf: (one: T) => string | null,
  told: OwnersTold,
): [owner: string | null, own: readonly T[]][] {
  const groups = Map.groupBy(all, ownerOf);
  const owners = [...groups.keys(), ...told.filter((one) => one.kind === kind).map(({ owner }) => owner)];
  return [...new Set([null, ...owners])].map((owner) => [owner, groups.get(owner) ?? []]);
}

const CRITICAL = { owner: null, severity: "critical" } as const;

/** Of what either is or is not. */
const ONCE = { count: 1, newest: 0 };

/** Workspaces that a message names. */
const MOST_NAMED = 5;

function describeLost(ids: readonly string[], zeros: number): string {
  const more = ids.length > MOST_NAMED ? ` and ${ids.length - MOST_NAMED} more` : "";
  const withdrawn = zeros > 0 ? ` ${zeros} zero values are no longer trusted.` : "";
  return `The key lost access to workspace ${ids.slice(0, MOST_NAMED).join(", ")}${more}.${withdrawn} See usage-etl status.`;
}

/** An alert while anything is found. */
function found(
  kind: AlertKind,
  { count, newest }: AlertFacts["differences"],
  message: string,
  over: string,
): Condition {
  return { ...CRITICAL, kind, isFiring: count > 0, count, newest, message, over };
}

/** One alert for all limits: it is sent again with each mark that one of them passes, and in a new month. */
function limitCondition(limits: readonly LimitUse[]): Condition {
  const warned = limits.filter((one) => one.isRejecting || marksPassed(one) > 0);
  return {
    kind: "usage_limit",
    owner: null,
    isFiring: warned.length > 0,
    severity: severityIf(
      warned.every((one) => !one.isRejecting && (one.percent ?? 0) < 100 && one.reachedOn === null),
    ),
    count: warned.reduce((sum, one) => sum + marksPassed(one) + (one.isRejecting ? 1 : 0), 0),
    newest: Math.max(0, ...warned.map(({ month }) => Date.parse(month))),
    message: `${warned.map(describeLimit).join(" ")} See reporting_detail.usage_limit.`,
    over: "no usage limit is half used",
  };
}

/** A note: nobody has to do anything. */
function severityIf(isNote: boolean): Severity {
  return isNote ? "warning" : "critical";
}

/**
 * One alert for all budgets of an owner: it is sent again with each mark that one of them passes, when one will be used up, in a new
 * period of one of them and where other budgets are set. Only the latter two end it, since a forecast may come and go.
 */
export function budgetCondition({ budgets, changedAt }: CurrentBudgets): Condition {
  const warned = budgets.filter(isWarned);
  const isUsedUp = warned.some(({ reached }) => reached !== null);
  const starts = budgets.flatMap(({ period }) => (period === null ? [] : Date.parse(period.from)));
  return {
    kind: "budget",
    owner: null,
    isFiring: warned.length > 0,
    severity: severityIf(!isUsedUp),
    count: warned.reduce((sum, one) => sum + weightOf(one), 0),
    newest: Math.max(changedAt, ...starts),
    isHeld: true,
    message: `${warned.map(describeBudget).join(" ")} See usage-etl owners budgets.`,
    over: "no budget has passed a mark in its month or billing period",
  };
}

/** One alert for all days of the last two weeks: it is sent again when there are more of them, or a newer one. */
function unusualCondition(days: readonly UnusualOfWorkspace[]): Condition {
  return {
    ...found(
      "unusual",
      { count: days.length, newest: Math.max(0, ...days.map(({ day }) => Date.parse(day))) },
      `Unusual days. ${describeAll(days)} See reporting.fct_usage_project_daily.`,
      "no day that is loaded of the last two weeks is unusual",
    ),
    severity: "warning",
  };
}

/** A mark that is passed is more than a forecast that is gone. */
function weightOf({ passed, warnAt, reached }: MonthBudget): number {
  return 2 * warnAt.filter((mark) => mark <= (passed ?? 0)).length + (reached === null ? 0 : 1);
}
