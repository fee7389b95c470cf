import type { CalendarMonth } from "../../core/domain/months/month.ts";
import { addDays } from "../../core/domain/time/days.ts";
import { stepsOf, UNUSUAL_DAYS, type UnusualDay, unusualSince } from "../../core/domain/usage/unusual.ts";
import { sendAside } from "../../core/pipeline/source/send-request.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import type { Database } from "../../core/store/db/database.ts";
import { noteBillPart } from "./bill-terms.store.ts";
import {
  changesIn,
  type KeptChange,
  keepLoggedChanges,
  type MeasureDays,
  measureDays,
  unreadLog,
} from "./logged-changes.store.ts";
import { LIST_REFUSALS, type ReadPart, requestBill } from "./read-terms.ts";

/** Operations that change a bill, with what happened. Limits of Fleet, retention, plan and gateway policies count too. */
const OPERATIONS: Readonly<Record<string, string>> = {
  update_usage_limit: "a usage limit was changed",
  delete_usage_limit: "a usage limit was deleted",
  update_ttl_settings: "a retention setting was changed",
  update_payment_plan: "the payment plan was changed",
  create_gateway_policy: "a gateway policy was created",
  update_gateway_policy: "a gateway policy was changed",
  delete_gateway_policy: "a gateway policy was deleted",
  create_fleet_usage_limit: "a usage limit of Fleet was created",
  update_fleet_usage_limit: "a usage limit of Fleet was changed",
  delete_fleet_usage_limit: "a usage limit of Fleet was deleted",
};

/**
 * Reads the changes that the audit log has since the newest stored one. Most plans have no log, and most keys may not read it.
 * An older server may not know an operation and refuse the whole request, so then each operation is requested separately.
 */
export async function readAuditLog(source: OpenSource): Promise<ReadPart> {
  const { billing, sourceId, signal, store, log } = source;
  const unread = await unreadLog(store.db, sourceId);
  const sendMore = <T>(send: () => Promise<T>) => sendAside(source, send);
  const request = (operations: readonly string[]) =>
    requestBill(
      source,
      () => billing.loggedChanges({ ...unread, operations, signal, sendMore }),
      LIST_REFUSALS,
    );
  const operations = Object.keys(OPERATIONS);
  const requested = [await request(operations)];
  const [whole] = requested;
  if (whole !== undefined && "refusal" in whole && [400, 422].includes(whole.status ?? 0)) {
    requested.pop();
    for (const operation of operations) requested.push(await request([operation]));
  }
  const responses = requested.flatMap((one) => ("response" in one ? [one.response] : []));
  const refusal =
    responses.length > 0 ? null : whole !== undefined && "refusal" in whole ? whole.refusal : null;
  const refused = responses.flatMap((one) => one.refused);
  if (refused.length > 0)
    log.warn(
      { code: "logged_change_refused", refused: refused.length },
      `Invalid entries of the audit log were left out, such as ${refused[0]}.`,
    );
  const changes = responses.flatMap((one) => one.changes);
  const read = await keepLoggedChanges(store.db, { sourceId, changes });
  await noteBillPart(store.db, { sourceId, part: "audit_log", refusal });
  return { read, refusal };
}

interface Step extends UnusualDay, Omit<MeasureDays, "days"> {}

export interface ExplainedChange extends KeptChange {
  readonly steps: readonly Step[];
}

export async function changesOfMonth(
  db: Database,
  { source, month: { start, end } }: { source: string; month: CalendarMonth },
): Promise<ExplainedChange[]> {
  // A change of the evening before shows on the first of the month.
  const from = addDays(start, -1);
  const changes = await changesIn(db, { source, from, to: end });
  if (changes.length === 0) return [];
  const series = await measureDays(db, { source, from: addDays(from, -UNUSUAL_DAYS), to: addDays(end, 1) });
  const steps = [...Map.groupBy(series, ({ measure }) => measure).values()]
    .flatMap((ofMeasure) => unusualSince(ofMeasure, from))
    .flatMap(({ of: { days: _, ...of }, unusual }) => stepsOf(unusual).map((step) => ({ ...step, ...of })));
  return changes
    .map((change) => {
      const day = change.at.slice(0, 10);
      const isNear = (one: Step) =>
        [day, addDays(day, 1)].includes(one.day) &&
        (change.workspaceId === null || change.workspaceId === one.workspaceId);
      return { ...change, steps: steps.filter(isNear) };
    })
    .filter((one) => one.at >= start || one.steps.some(({ day }) => day >= start));
}

/** Describes the change without its time: "a retention setting was changed (update_ttl_settings)". */
export function changeWords({ operation, isCertain }: Pick<KeptChange, "operation" | "isCertain">): string {
  const what = OPERATIONS[operation] ?? "a setting was changed";
  return `${what} (${operation}${isCertain ? "" : "; the log does not say whether it succeeded"})`;
}

const MEASURE_WORDS: Readonly<Record<Step["measure"], string>> = {
  traces: "Traces",
  longlived: "Long-lived traces",
};
const MOST_STEPS = 3;

const MOST_CHANGES = 20;

/** A line for each change, and those beside which usage stepped first if there are too many. Names no cause. */
export function describeLoggedChanges(changes: readonly ExplainedChange[]): string[] {
  const shown = new Set(changes.toSorted((a, b) => b.steps.length - a.steps.length).slice(0, MOST_CHANGES));
  const more = changes.length - shown.size;
  return [
    ...changes.filter((one) => shown.has(one)).map(describeLoggedChange),
    ...(more > 0
      ? [`And ${more.toLocaleString("en-US")} more changes of settings, which the timeline lists.`]
      : []),
  ];
}

function describeLoggedChange({ at, workspaceName, workspaceId, steps, ...change }: ExplainedChange): string {
  const where = workspaceId === null ? "" : ` in workspace ${workspaceName ?? workspaceId}`;
  const stepped = steps.slice(0, MOST_STEPS).map(({ measure, expected, amount, isFinal, day, ...of }) => {
    const [before, after] = [expected, amount].map((one) => Math.round(one).toLocaleString("en-US"));
    return `${MEASURE_WORDS[measure]} of workspace ${of.workspaceName} stepped from about ${before} a day to ${isFinal ? "" : "at least "}${after} on ${dayWords(day)}.`;
  });
  const more = steps.length - stepped.length;
  return [
    `On ${dayWords(at)} ${changeWords(change)}${where}.`,
    ...stepped,
    ...(more > 0 ? [`${more} more figures stepped.`] : []),
  ].join(" ");
}

function dayWords(at: string): string {
  return new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });
}
