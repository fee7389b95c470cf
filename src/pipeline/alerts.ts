import { describeUnpriced } from "../domain/bill/price.ts";
import { describeLimit, type LimitUse, marksPassed } from "../domain/bill/usage-limit.ts";
import { EtlError } from "../errors.ts";
import { counted, printableLine } from "../printable.ts";
import {
  type AlertFacts,
  type AlertKind,
  alertFacts,
  noteTold,
  toldAlerts,
} from "../store/activity/alerts.ts";
import type { Database } from "../store/db/database.ts";
import { describeBudget, type MonthBudget, type WarnedBudgets, warnedBudgets } from "./bill/budgets.ts";
import type { EnteredSource } from "./source/source.ts";
import { describeAll, ofLastWeeks, type UnusualOfWorkspace, unusualLately } from "./unusual.ts";

/** One line of a message to the webhook. */
interface Alert {
  readonly source: string;
  readonly alert: AlertKind;
  readonly state: "firing" | "cleared";
  readonly count: number;
  readonly message: string;
}

export interface AlertSettings {
  readonly slug: string;
  /** Whether it tells what is of no source. Default: it was registered first. */
  readonly isFirst?: boolean;
  /** Undefined: no alerts are sent. */
  readonly webhookUrl: string | undefined;
  /** Time without a load after which a source is stale. */
  readonly staleAfterMs: number;
  /** For the whole of a message and its answer. Default: 10 s. */
  readonly webhookWithinMs?: number;
  /** Ends a message that is under way. */
  readonly signal?: AbortSignal | undefined;
}

const WEBHOOK_WITHIN_MS = 10_000;

/**
 * Sends the webhook one message with the alerts that began, grew or ended since the last one, if any. A message
 * that it refuses (other than 2xx) is sent again next time. Messages hold counts, names and commands, no address and no whole key.
 *
 * Errors: `webhook_failed`.
 */
export async function raiseAlerts(
  { store, sourceId }: EnteredSource,
  settings: AlertSettings,
): Promise<{ told: number; cleared: number }> {
  const { webhookUrl, slug } = settings;
  if (webhookUrl === undefined) return { told: 0, cleared: 0 };
  const [facts] = await alertFacts(store.db, sourceId);
  if (facts === undefined) return { told: 0, cleared: 0 };
  const before = new Map((await toldAlerts(store.db, sourceId)).map((alert) => [alert.kind, alert]));
  // What cannot be read says nothing and holds up no other alert: its error comes after them.
  let failure: unknown;
  const orNothing = (error: unknown) => {
    failure = error;
    return undefined;
  };
  const budgets = await warnedBudgets(store.db).catch(orNothing);
  const unusual = await unusualLately(store.db).catch(orNothing);
  const ended = (outcome: { told: number; cleared: number }) => {
    if (failure !== undefined) throw failure;
    return outcome;
  };
  const changed = conditions(facts, { ...settings, budgets, unusual }).filter(
    ({ kind, isFiring, isHeld, count, newest }) => {
      const told = before.get(kind);
      if (!isFiring) return told !== undefined && (isHeld !== true || newest > told.newest);
      return told === undefined || count > told.told || newest > told.newest;
    },
  );
  if (changed.length === 0) return ended({ told: 0, cleared: 0 });
  const alerts = changed.map(({ kind, isFiring, count, message, over }): Alert => {
    const state = isFiring ? "firing" : "cleared";
    return { source: slug, alert: kind, state, count, message: isFiring ? message : `${over}.` };
  });
  await post(webhookUrl, alerts, settings);
  const noted = changed.map(({ kind, count, newest, isFiring }) => {
    return { sourceId, kind, told: count, newest, isOver: !isFiring };
  });
  await noteTold(store.db, noted);
  const told = changed.filter(({ isFiring }) => isFiring).length;
  return ended({ told, cleared: changed.length - told });
}

/** A source is stale after so many syncs without a load, but not before an hour. */
const STALE_AFTER_SYNCS = 4;
const STALE_AFTER_MS = 3_600_000;

export function staleAfterOf(syncEveryMs: number): number {
  return Math.max(STALE_AFTER_SYNCS * syncEveryMs, STALE_AFTER_MS);
}

export interface FiringAlert {
  readonly kind: AlertKind;
  /** Nobody has to do anything: a limit is more than half used, and not reached this month. */
  readonly isNote: boolean;
  readonly message: string;
}

/** Its message without the view or command at the end, which is for those who have no page. */
export function factOf({ message }: FiringAlert): string {
  return message.replace(/ See (reporting(?:_detail)?\.\w+|usage-etl [a-z ]*(budgets|status))\.$/, "");
}

/** The alerts of each source (by slug) that apply now, whether a webhook was sent them or not. */
export async function firingAlerts(
  db: Database,
  { staleAfterMs }: Pick<AlertSettings, "staleAfterMs">,
): Promise<ReadonlyMap<string, readonly FiringAlert[]>> {
  const [budgets, unusual] = [await warnedBudgets(db), await unusualLately(db)];
  return new Map(
    (await alertFacts(db)).map((facts) => [
      facts.source,
      conditions(facts, { staleAfterMs, budgets, unusual })
        .filter(({ isFiring }) => isFiring)
        .map(({ kind, isNote = false, message }) => ({ kind, isNote, message })),
    ]),
  );
}

interface Condition {
  readonly kind: AlertKind;
  readonly isFiring: boolean;
  /** Default false. */
  readonly isNote?: boolean;
  /** An alert is sent again where either grows. */
  readonly count: number;
  readonly newest: number;
  /** It is over only where `newest` has grown: what it follows from may come and go. Default false. */
  readonly isHeld?: boolean;
  readonly message: string;
  readonly over: string;
}

function conditions(
  facts: AlertFacts,
  {
    staleAfterMs,
    budgets,
    unusual,
    isFirst = facts.isFirst,
  }: Pick<AlertSettings, "staleAfterMs" | "isFirst"> & {
    readonly budgets: WarnedBudgets | undefined;
    readonly unusual: readonly UnusualOfWorkspace[] | undefined;
  },
): Condition[] {
  const { differences, controlTotals, providerTotals, lostWorkspaces, quietSeconds, unpriced } = facts;
  const hours = Math.floor(quietSeconds / 3600);
  const all: Condition[] = [
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
    {
      kind: "final_changed",
      isFiring: facts.changedLately,
      count: facts.finalChanges,
      newest: facts.newestRestatement,
      message: `${counted(facts.finalChanges, "final count")} changed. See reporting_detail.usage_restatement.`,
      over: "no final count changed for a day",
    },
    {
      kind: "stale",
      isFiring: quietSeconds * 1000 > staleAfterMs,
      ...ONCE,
      message: `Nothing was loaded for ${hours > 0 ? `${hours} h` : `${Math.floor(quietSeconds / 60)} min`}. See usage-etl status.`,
      over: "usage is loaded again",
    },
    {
      kind: "refused",
      isFiring: facts.isRefused,
      ...ONCE,
      message: "The platform refuses the key. See usage-etl status.",
      over: "the platform takes the key again",
    },
    found(
      "access_lost",
      lostWorkspaces,
      describeLost(lostWorkspaces.ids, facts.withdrawnZeros),
      "the key has access to every known workspace again, and what was withdrawn is loaded",
    ),
    limitCondition(facts.limits),
    // One that is of no source is told by the first.
    ...(budgets === undefined
      ? []
      : [
          budgetCondition({
            ...budgets,
            budgets: budgets.budgets.filter(({ source }) =>
              source === null ? isFirst : source === facts.source,
            ),
          }),
        ]),
    ...(unusual === undefined ? [] : [unusualCondition(ofLastWeeks(unusual, facts.source, facts.now))]),
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

function isNo(what: string, many: number): string {
  return many === 1 ? `is not the ${what}` : `are not the ${what}s`;
}

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
  return { kind, isFiring: count > 0, count, newest, message, over };
}

/** One alert for all limits: it is sent again with each mark that one of them passes, and in a new month. */
function limitCondition(limits: readonly LimitUse[]): Condition {
  const warned = limits.filter((one) => one.isRejecting || marksPassed(one) > 0);
  return {
    kind: "usage_limit",
    isFiring: warned.length > 0,
    isNote: warned.every((one) => !one.isRejecting && (one.percent ?? 0) < 100 && one.reachedOn === null),
    count: warned.reduce((sum, one) => sum + marksPassed(one) + (one.isRejecting ? 1 : 0), 0),
    newest: Math.max(0, ...warned.map(({ month }) => Date.parse(month))),
    message: `${warned.map(describeLimit).join(" ")} See reporting_detail.usage_limit.`,
    over: "no usage limit is half used",
  };
}

/**
 * One alert for all budgets of a source: it is sent again with each mark that one of them passes, when one will be used up, in a new
 * month and where other budgets are set. Only the latter two end it, since a forecast may come and go.
 */
export function budgetCondition({ budgets, since }: WarnedBudgets): Condition {
  const isUsedUp = budgets.some(({ reached }) => reached !== null);
  return {
    kind: "budget",
    isFiring: budgets.length > 0,
    isNote: !isUsedUp,
    count: budgets.reduce((sum, one) => sum + weightOf(one), 0),
    ...{ newest: since, isHeld: true },
    message: `${budgets.map(describeBudget).join(" ")} See usage-etl owners budgets.`,
    over: "no budget has passed a mark this month",
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
    isNote: true,
  };
}

/** A mark that is passed is more than a forecast that is gone. */
function weightOf({ passed, warnAt, reached }: MonthBudget): number {
  return 2 * warnAt.filter((mark) => mark <= (passed ?? 0)).length + (reached === null ? 0 : 1);
}

/** What Slack takes for a command in a text, such as one that calls everybody. */
const ENTITIES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** A body that Slack and similar programs show as text, and others read as data. */
async function post(
  url: string,
  alerts: readonly Alert[],
  { webhookWithinMs = WEBHOOK_WITHIN_MS, signal }: Pick<AlertSettings, "webhookWithinMs" | "signal">,
): Promise<void> {
  const text = alerts
    .map(
      ({ source, state, message }) =>
        `${state === "firing" ? "ALERT" : "OK"} usage-etl ${source}: ${message}`,
    )
    .join("\n")
    .replace(/[&<>]/g, (sign) => ENTITIES[sign] ?? sign);
  // Loaded where a message is sent: `status` only reads which alerts apply.
  const { request } = await import("undici");
  // A limit between two bytes would hold the job for as long as the receiver sends some.
  const deadline = AbortSignal.timeout(webhookWithinMs);
  const ends = signal === undefined ? deadline : AbortSignal.any([deadline, signal]);
  let status: number;
  try {
    const answer = await request(url, {
      method: "POST",
      headers: { "content-type": "application/json", "user-agent": "usage-etl" },
      body: JSON.stringify({ text, alerts }),
      signal: ends,
    });
    status = answer.statusCode;
    // Nothing in it matters, nor whether it ends.
    await answer.body.dump({ limit: 65_536, signal: ends }).catch(() => {});
  } catch (error) {
    // A webhook's address is its secret, so neither it nor the cause's message is shown.
    const within = `within ${webhookWithinMs / 1000} s`;
    const why = deadline.aborted ? within : `(${(error as { code?: string }).code ?? "no code"})`;
    throw webhookFailed(`does not answer ${why}`);
  }
  if (status < 200 || status >= 300) throw webhookFailed(`answered ${status}`);
}

function webhookFailed(what: string): EtlError {
  return new EtlError({
    code: "webhook_failed",
    message: `The webhook of USAGE_ALERT_WEBHOOK_URL ${what}.`,
    next: "Check the address with its owner. The alerts are sent again within a minute.",
    retryable: true,
  });
}
