import { describeDuration } from "../../core/base/clock.ts";
import { counted } from "../../core/base/printable.ts";
import { describeOtherDifferences } from "../../core/domain/proof/difference.ts";
import { describeRestatements } from "../../core/domain/proof/restatement.ts";
import { addDays, isDay } from "../../core/domain/time/days.ts";
import { METER_NAME, METER_NOT_KNOWN } from "../../core/domain/usage/meter.ts";
import { outcomeOf } from "../../core/pipeline/as-run.ts";
import { neverReadProblem } from "../../core/pipeline/never-read.ts";
import type { dataStartProblem } from "../../core/pipeline/source/data-start.ts";
import { describePutOff, type SyncBudget } from "../../core/pipeline/sync/sync-budget.ts";
import type { LostWorkspace } from "../../core/store/access/withdrawn-zeros.ts";
import type { Freshness, SourceProgress, SourceStatus } from "../../core/store/activity/overview.ts";
import type { Run } from "../../core/store/activity/run-history.ts";
import { EXIT, firstExit } from "../../terminal/exit.ts";
import { describeUnknown } from "../../terminal/load-report.ts";
import { count, instant, linesOf, second, wrapped } from "../../terminal/output.ts";
import { factOf } from "../alerts/conditions.ts";
import { describeCosts, type UnpricedUsage } from "../costs/price.ts";
import { describeLimit, type LimitUse } from "../costs/usage-limit.ts";
import type { StrideDays } from "../coverage/coverage-lines.store.ts";
import type { SourceTrust } from "../coverage/trust.store.ts";
import type { AlertKind } from "../owners/alert-route.ts";
import type { Advice, SourceReport } from "./advice.ts";

export type ShownStatus = SourceStatus &
  SourceProgress &
  Pick<SourceReport, "lastSync" | "nextSync" | "alerts" | "advice" | "lostWorkspaces" | "neverRead"> & {
    readonly budget: SyncBudget | null;
    readonly unknownMeters: SourceTrust["unknownMeters"];
    readonly otherGaps: SourceTrust["otherGaps"];
    readonly provedUntil: string;
    /** Command that proves more days. Null: every final day is proved. */
    readonly proveWith: string | null;
    readonly dataStartProblem: ReturnType<typeof dataStartProblem>;
    readonly freshness: readonly Freshness[];
    /** Null: Redis does not list processes. */
    readonly workers: number | null;
    readonly schedulers: number | null;
    readonly hasRedis: boolean;
    readonly hasSchedules: boolean;
    readonly redis: { readonly code: string; readonly message: string } | null;
    readonly days: readonly StrideDays[];
    readonly costs: UnpricedUsage;
    readonly limits: readonly LimitUse[];
  };

const OUT_OF_REACH = new Set([
  "network",
  "timeout",
  "server_error",
  "platform_unreachable",
  "redis_unreachable",
]);

export function exitOfStatus(status: ShownStatus): number {
  const { lastSync, alerts, workers, hasSchedules, days } = status;
  const isAlert = (...kinds: AlertKind[]) => alerts.some(({ kind }) => kinds.includes(kind));
  const hasFailed = lastSync?.outcome === "failed" || lastSync?.outcome === "lost";
  const exits: number[] = [];
  if (status.refused !== null) exits.push(EXIT.refused);
  if (status.redis !== null || (hasSchedules && workers === 0)) exits.push(EXIT.unreachable);
  if (hasFailed) exits.push(OUT_OF_REACH.has(lastSync.code ?? "") ? EXIT.unreachable : EXIT.partlyFailed);
  const isOpen = days.some(({ missing, failed, unverified }) => missing + failed + unverified > 0);
  const lacksOther = status.unknownMeters.length + status.otherGaps.length > 0;
  if (status.failures.length > 0 || isOpen || lacksOther || isAlert("stale", "access_lost"))
    exits.push(EXIT.partlyFailed);
  // Changed final counts change no exit code, because the stored counts are right now.
  if (status.openDifferences + status.platformDisagrees > 0) exits.push(EXIT.mismatch);
  return firstExit(exits);
}

const MOST_LIMITS = 5;

const WIDTH = "differences  ".length;

function line(label: string, text: string): string {
  return wrapped(label.padEnd(WIDTH), text);
}

function titleOf({ source, baseUrl, workspaces }: ShownStatus): string {
  return wrapped("", `${source}: ${baseUrl}, ${counted(workspaces, "workspace")}`);
}

export function describeStatus(status: ShownStatus, now: number): string {
  const problems = [
    ...[status.budget?.problem, status.dataStartProblem],
    neverReadProblem(status.neverRead),
  ].filter((one) => one !== undefined);
  const said = status.advice.alerts?.isWhole ? status.advice.alerts.kinds : [];
  const alerts = status.alerts.filter(({ kind }) => !said.includes(kind));
  const moreLimits = status.limits.length - MOST_LIMITS;
  return linesOf(
    titleOf(status),
    line("to do", describeAdvice(status.advice)),
    line("last sync", describeLast(status.lastSync, now)),
    line("next sync", describeNext(status, now)),
    line("service", describeService(status)),
    line("requests", describeRequests(status)),
    line("fetch tasks", describeTasks(status)),
    status.days.map((days) => line(days.stride === "day" ? "days" : "hours", describeDays(days))),
    freshnessOf(status).map((text) => line("loaded", text)),
    line("proved", describeProved(status)),
    line(
      "differences",
      `${status.openDifferences} open differences, ${status.platformDisagrees} where the platform contradicts itself${describeOtherDifferences(status.otherDifferences)}`,
    ),
    line("restated", describeRestatements(status.restatements)),
    line("compared", describeCompared(status)),
    line("costs", describeCosts(status.costs)),
    status.limits.slice(0, MOST_LIMITS).map((one) => line("limit", describeLimit(one))),
    moreLimits > 0 && line("limit", `${moreLimits} more in reporting_detail.usage_limit`),
    status.alerts.length === 0 && line("alerts", "none"),
    alerts.map((one) => line("ALERT", `${factOf(one)} [${one.kind}]`)),
    status.refused !== null && line("KEY", `The platform refuses the key: ${status.refused}`),
    problems.map(({ message, next, code }) => line("WARNING", `${message} ${next} [${code}]`)),
    status.unknownMeters.map((one) => line("NOT KNOWN", describeUnknown(one))),
    status.otherGaps.map((one) => line("days", describeOtherGaps(one))),
    status.failures.map((failures) => line("FAILED", describeFailures(failures))),
    describeLost(status.lostWorkspaces).map((text) => line("WARNING", text)),
  );
}

export function describeInShort(status: ShownStatus, now: number): string {
  const { provedUntil, dataStart, budget, dataStartProblem } = status;
  const problems = [
    ...[budget?.problem, dataStartProblem].flatMap((one) => one?.code ?? []),
    ...status.failures.map(({ code }) => code),
    ...status.unknownMeters.map(() => METER_NOT_KNOWN),
    ...status.alerts.map(({ kind }) => kind),
  ];
  const counts = Map.groupBy(problems, (one) => one);
  const proved =
    provedUntil <= dataStart ? `${dataStart} is not proved` : `proved until ${addDays(provedUntil, -1)}`;
  return linesOf(
    titleOf(status),
    line("to do", describeAdvice(status.advice)),
    line("last sync", describeLast(status.lastSync, now)),
    status.days
      .filter(({ stride }) => stride === "day")
      .map((days) => line("days", `${describeCounts(days, { isShort: true })} (daily figures); ${proved}`)),
    problems.length > 0 &&
      line(
        "PROBLEMS",
        [...counts].map(([one, { length }]) => (length === 1 ? one : `${one} (${length})`)).join(", "),
      ),
  );
}

function describeCounts(of: StrideDays, { isShort = false } = {}): string {
  const { missing, failed, unverified, provisional, final } = of;
  return Object.entries({ missing, failed, unverified, "not final": provisional, final })
    .filter(([name, days]) => !isShort || days > 0 || name === "final")
    .map(([name, days]) => `${count(days)} ${name}`)
    .join(", ");
}

function describeAdvice({ sentence, command }: Advice): string {
  return command === undefined ? sentence : `${sentence} \`${command}\``;
}

function describeLast(run: Run | null, now: number): string {
  if (run === null) return "none is recorded";
  const { startedAt, finishedAt, seconds, requests, code, reason } = run;
  const took =
    finishedAt === null
      ? `for ${describeDuration(seconds * 1000)} now`
      : `in ${describeDuration(seconds * 1000)}`;
  const why = reason === null ? "" : `. ${reason}${code === null ? "" : ` [${code}]`}`;
  return `${second(startedAt)} UTC, ${describeDuration(Math.max(0, now - Date.parse(startedAt)))} ago: ${outcomeOf(run)}, ${requests ?? 0} requests ${took}${why}`;
}

function describeNext({ nextSync, redis, hasRedis }: ShownStatus, now: number): string {
  if (redis !== null) return "not known without Redis";
  if (!hasRedis) return "not known: REDIS_URL is not set, so each run of `usage-etl sync --inline` decides";
  if (nextSync === null)
    return "no schedule is in Redis. Start `usage-etl serve`, or run `usage-etl sync --inline`";
  const inMs = Date.parse(nextSync) - now;
  const when = inMs >= 0 ? `in ${describeDuration(inMs)}` : `due for ${describeDuration(-inMs)}`;
  return `${second(nextSync)} UTC, ${when}`;
}

function describeService({ redis, workers, schedulers }: ShownStatus): string {
  if (redis !== null) return `${redis.message} [${redis.code}]`;
  if (workers === null || schedulers === null)
    return "not known: REDIS_URL is not set, or that Redis does not list its clients";
  return `${counted(workers, "worker")}, ${counted(schedulers, "scheduler")} seen`;
}

function describeRequests({ budget }: ShownStatus): string {
  if (budget === null) return "not known: the source is not configured here";
  return `a sync needs at most ${count(budget.needed)}; the rate limit allows ${count(budget.allowed)} until the next`;
}

function describeTasks({ waiting, queued, oldestSeconds, budget }: ShownStatus): string {
  if (oldestSeconds === null) return "none waits";
  const putOff = budget?.problem === undefined && budget?.putOff;
  const more = putOff ? `. ${describePutOff(putOff)}` : "";
  return `${count(waiting)} wait, ${count(queued)} are queued, the oldest for ${describeDuration(oldestSeconds * 1000)}${more}`;
}

function describeProved({
  provedUntil,
  dataStart,
  proveWith,
}: Pick<ShownStatus, "provedUntil" | "dataStart" | "proveWith">): string {
  const more = proveWith === null ? "" : `. To prove more: \`${proveWith}\``;
  if (provedUntil <= dataStart)
    return `not from the start: ${dataStart} is the first day that is not proved${more}`;
  return `by day until ${addDays(provedUntil, -1)}, by the export or by totals (all dimensions)${more}`;
}

function describeOtherGaps({ meter, idleDays, requestedDays }: SourceTrust["otherGaps"][number]): string {
  const loading = requestedDays === 0 ? "" : `, ${count(requestedDays)} of them being loaded`;
  return `${count(idleDays + requestedDays)} daily figures of ${METER_NAME[meter]} not loaded${loading}`;
}

function describeDays(days: StrideDays): string {
  return `${describeCounts(days)} (daily figures${days.stride === "day" ? "" : ", by hour"})`;
}

function freshnessOf({ freshness }: Pick<ShownStatus, "freshness">): string[] {
  const hourOf = (at: string | null) => at?.slice(0, "2026-03-01T05".length);
  const sorted = freshness.toSorted(
    (a, b) => a.stride.localeCompare(b.stride) || a.loadedUntil.localeCompare(b.loadedUntil),
  );
  const alike = Map.groupBy(
    sorted,
    (one) => `${one.stride} ${hourOf(one.loadedUntil)} ${hourOf(one.finalUntil)}`,
  );
  return [...alike.values()].map((some) => {
    const [{ stride, loadedUntil, finalUntil } = { stride: "", loadedUntil: "", finalUntil: null }] = some;
    const isAll = some.length === freshness.filter((one) => one.stride === stride).length;
    const final = finalUntil === null ? "none is final" : `final until ${untilText(finalUntil)}`;
    const whose = isAll ? "all dimensions" : some.map(({ groupBy }) => groupBy).join(", ");
    return `by ${stride} until ${untilText(loadedUntil)}, ${final} (${whose})`;
  });
}

/** Shows an end at midnight as the day before, as on pages; otherwise the instant. */
function untilText(end: string): string {
  const text = instant(end);
  return isDay(text) ? addDays(text, -1) : text;
}

function describeCompared({ lastReconciledAt, lastTotalsAt }: ShownStatus): string {
  const when = (at: string | null) => (at === null ? "never" : `${second(at)} UTC`);
  return `with the export: ${when(lastReconciledAt)}; with totals: ${when(lastTotalsAt)}`;
}

function describeFailures({
  state,
  code,
  parts,
  byHour,
  due,
  notRequested,
  nextRetry,
}: ShownStatus["failures"][number]) {
  const later = parts - due - notRequested;
  return [
    `${counted(parts, "range")}${byHour === 0 || byHour === parts ? "" : `, ${byHour} of them by hour,`} ${parts === 1 ? "is" : "are"} ${state} with ${code}.`,
    due > 0 && `${due} of them are fetched again with the next sync.`,
    later > 0 && `${later} of them wait for ${due > 0 ? "their retry time" : nextRetry}.`,
    notRequested > 0 &&
      `${notRequested} of them are not fetched again: the server does not support their stride, or the configuration no longer names their workspace.`,
  ]
    .filter((sentence) => sentence !== false)
    .join(" ");
}

const MOST_NAMED = 10;

function firstLines(lines: readonly string[], ofWhat: string): string[] {
  const left = lines.length - MOST_NAMED;
  return left <= 0
    ? [...lines]
    : [...lines.slice(0, MOST_NAMED), `And ${left} more ${ofWhat}, which --json shows.`];
}

function describeLost(all: readonly LostWorkspace[]): string[] {
  const lines = all.map((one) => {
    const { workspaceId, zeros, firstDay, lastDay, closedMonths } = one;
    const withdrawn = `${zeros} zeros are no longer trusted, ${firstDay} to ${lastDay}. They are fetched again when access is proven.`;
    const closed = `Closed months with such days: ${closedMonths.join(", ")}.`;
    return [
      `Workspace ${workspaceId}: ${whatIsLost(one)}`,
      ...(zeros > 0 ? [withdrawn] : []),
      ...(closedMonths.length > 0 ? [closed] : []),
    ].join(" ");
  });
  return firstLines(lines, "workspaces that the key lost");
}

function whatIsLost({ isUnread, isUnlisted }: LostWorkspace): string {
  const listed = isUnlisted ? "The platform no longer lists it, though it is not deleted." : "";
  if (isUnread)
    return `the key no longer reads its usage. Loaded usage stays, and nothing becomes zero because of that. ${listed}`.trim();
  return isUnlisted ? listed.replace("The", "the") : "the key had lost access.";
}
