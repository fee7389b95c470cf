import { PlatformError } from "../../base/errors.ts";
import { requestsFor, type UnstoredRequest } from "../../domain/planning/request.ts";
import { dayOf } from "../../domain/time/days.ts";
import { DAY_MS, floorToGrid, HOUR_MS, STRIDE_MS, strideOfRange } from "../../domain/time/stride.ts";
import type { Interval } from "../../domain/time/window.ts";
import { METER, METER_NAME, type Meter } from "../../domain/usage/meter.ts";
import type { UsageRecord } from "../../domain/usage/record.ts";
import { lostWorkspaces } from "../../store/access/withdrawn-zeros.ts";
import {
  type LearnableMeter,
  type LearnedMeter,
  learnedMeters,
  learnMeter,
  type MeterState,
  workspacesWith,
} from "../../store/catalog/source-meters.ts";
import { storeNow } from "../../store/work/fetch-ledger.ts";
import { readRecords } from "./fetch-usage.ts";
import { isKeyRefused, isMeterRefused } from "./refused-key.ts";
import { sendAside, sendRequest } from "./send-request.ts";
import type { OpenSource } from "./source.ts";

interface Lesson {
  readonly state: MeterState;
  readonly evidence: string;
  /** First day of deployment usage, epoch ms. */
  readonly start?: number;
  /** True: the response was empty. A key that lost access gets empty responses too, so a counted meter stays counted. */
  readonly isEmpty?: boolean;
  /** True if another attempt may get another response. */
  readonly mayPass?: boolean;
}

/** Returns the wanted meters that the server may count, but of which this is unknown or was learned long ago. */
export async function metersToLearn({ store, sourceId, settings }: OpenSource): Promise<ReadonlySet<Meter>> {
  const known = await learnedMeters(store.db, sourceId);
  const isKnown = (meter: Meter) => known.some((one) => one.meter === meter && !one.isDue);
  return new Set(settings.meters.filter((meter) => meter !== "traces" && !isKnown(meter)));
}

/**
 * Learns about a requested meter, unless that was done lately. Returns why it cannot be requested. Undefined: the server counts
 * it, or nothing was learned.
 */
export async function learnRequested(source: OpenSource, meter: Meter): Promise<string | undefined> {
  if (meter === "traces") return undefined;
  const { store, sourceId } = source;
  const learned = async () => (await learnedMeters(store.db, sourceId)).find((one) => one.meter === meter);
  if ((await learned())?.isDue !== false) await learnMeters(source, new Set([meter]));
  const known = await learned();
  return known?.state === "counted" ? undefined : known?.evidence;
}

/**
 * Learns which of these meters (default: those that are due) the server counts, and since when. Updates `source.server`. No
 * meter is requested before: a server that does not know `trace_tier` responds with all traces. Returns the meters just seen to
 * be counted. Throws if the key is refused.
 */
export async function learnMeters(
  source: OpenSource,
  meters?: ReadonlySet<Meter>,
): Promise<ReadonlySet<Meter>> {
  const { store, sourceId, log } = source;
  const due = meters ?? (await metersToLearn(source));
  if (due.size === 0) return new Set();
  const requestedAt = await storeNow(store.db);
  const known = new Map((await learnedMeters(store.db, sourceId)).map((one) => [one.meter, one]));
  const lessons = new Map<LearnableMeter, Lesson>();
  const tiers = (["longlived", "shortlived"] as const).filter((tier) => due.has(tier));
  if (tiers.length > 0) {
    const lesson = await learnTiers(source);
    for (const tier of tiers) lessons.set(tier, lesson);
  }
  if (due.has("deployments")) lessons.set("deployments", await learnDeployments(source));
  for (const meter of ["sandboxes", "evaluators"] as const) {
    if (due.has(meter)) lessons.set(meter, await learnByWorkspace(source, meter, known.get(meter)));
  }
  for (const [meter, lesson] of lessons) {
    const before = known.get(meter);
    // A counted meter stays counted until a response says otherwise.
    const isDoubtful =
      lesson.state === "not_known" || lesson.state === "nothing_yet" || lesson.isEmpty === true;
    if (isDoubtful && before?.state === "counted") continue;
    const { state, evidence, start } = lesson;
    const startsOn = start === undefined ? {} : { startsOn: dayOf(start) };
    await learnMeter(store.db, { sourceId, meter, state, evidence, requestedAt, ...startsOn });
    if (before?.state !== state) log.info({ meter, state, evidence }, "meter learned");
  }
  source.server.takeOver(await learnedMeters(store.db, sourceId), source.dataStart);
  return new Set([...lessons].filter(([, { state }]) => state === "counted").map(([meter]) => meter));
}

/**
 * From this version on, a self-hosted server does not track long-lived traces and responds with zeros forever
 * (docs/platform.md).
 */
const WITHOUT_TIERS = [0, 16, 0] as const;

/**
 * Compares the tiers with all traces over the time that has ended. A server that ignores `trace_tier` returns all traces for
 * each tier.
 */
async function learnTiers(source: OpenSource): Promise<Lesson> {
  const range = { start: source.dataStart, end: floorToGrid(await storeNow(source.store.db), DAY_MS) };
  if (range.end <= range.start) return { state: "nothing_yet", evidence: "no day has ended yet" };
  const sums = { traces: 0, longlived: 0, shortlived: 0 };
  for (const meter of ["traces", "longlived", "shortlived"] as const) {
    const refused = await sumUp(source, { meter, range }, ({ traces }) => {
      sums[meter] += traces;
    });
    if (refused !== undefined) return refused;
    // Without traces, no tier has missing usage. Otherwise an unused organization would stay incomplete.
    if (sums.traces === 0) return { state: "nothing_yet", evidence: "no trace is counted yet" };
  }
  const { traces, longlived, shortlived } = sums;
  const figures = `${count(traces)} traces, ${count(longlived)} long-lived, ${count(shortlived)} short-lived`;
  if (longlived === traces && shortlived === traces)
    return { state: "not_counted", evidence: `each tier has all traces, so it ignores the tier: ${figures}` };
  if (longlived === 0) {
    const info = await sendRequest(source, () => source.billing.info({ signal: source.signal }));
    const version = info?.version ?? null;
    if (version !== null && isFrom(version, WITHOUT_TIERS)) {
      const found = `version ${version} returned no long-lived trace, and`;
      const since = WITHOUT_TIERS.join(".");
      if (info?.isSelfHosted === true)
        return {
          state: "not_counted",
          evidence: `${found} self-hosted servers do not track them from ${since} on`,
        };
      // The zero may be right, because not every server says whether it is self-hosted. Each trace is in one of the tiers, so
      // usage is missing while its tier is unknown.
      return {
        state: "not_known",
        evidence: `${found} it is not known whether it is self-hosted: such servers do not track them from ${since} on`,
      };
    }
  }
  if (longlived + shortlived === traces) return { state: "counted", evidence: figures };
  return { state: "not_known", evidence: `the tiers do not add up: ${figures}` };
}

/** A transient error must not leave a sync incomplete. The next sync tries again. */
const ATTEMPTS = 3;

const YEARS_BACK = 5;

async function learnDeployments(source: OpenSource): Promise<Lesson> {
  const now = await storeNow(source.store.db);
  const end = floorToGrid(now, DAY_MS);
  let range: Interval = { start: floorToGrid(now - YEARS_BACK * STRIDE_MS.year, STRIDE_MS.year), end };
  for (const length of [STRIDE_MS.year, STRIDE_MS.month, DAY_MS]) {
    const { start } = range;
    let first = Number.POSITIVE_INFINITY;
    const refused = await sumUp(source, { meter: "deployments", range }, ({ bucketStart, traces }) => {
      if (traces > 0) first = Math.min(first, Math.max(bucketStart ?? start, start));
    });
    if (refused !== undefined) return refused;
    if (first === Number.POSITIVE_INFINITY) {
      if (length === STRIDE_MS.year) return none(source, "deployments");
      break;
    }
    range = { start: floorToGrid(first, DAY_MS), end: Math.min(first + length, end) };
  }
  const evidence = `deployment usage begins on ${dayOf(range.start)}`;
  return { state: "counted", evidence, start: range.start };
}

/**
 * How far back the first search and later ones reach. While no such usage exists, this takes one request per workspace and day,
 * and a few more at first.
 */
const LOOKS = {
  sandboxes: { first: Number.POSITIVE_INFINITY, later: 30 * DAY_MS },
  // A response covers seven days.
  evaluators: { first: 91 * DAY_MS, later: 7 * DAY_MS },
} as const;

/** After this many workspaces without a response the search ends, because each takes several attempts. */
const MOST_FAILURES = 3;

/** Searches for a workspace with such usage. A refused workspace may be deleted, or never had any. */
async function learnByWorkspace(
  source: OpenSource,
  meter: keyof typeof LOOKS,
  before: Pick<LearnedMeter, "noneUntil" | "state"> | undefined,
): Promise<Lesson> {
  const end = floorToGrid(await storeNow(source.store.db), HOUR_MS);
  // A first search that broke off starts again. A later search continues where the last whole one ended.
  const noneUntil = before?.noneUntil?.getTime();
  const from = noneUntil === undefined ? end - LOOKS[meter].first : noneUntil - LOOKS[meter].later;
  const start = Math.max(source.dataStart, floorToGrid(Math.max(from, 0), DAY_MS));
  if (start >= end) return { state: "nothing_yet", evidence: "no hour has ended yet" };
  const refusals: Lesson[] = [];
  let unusable: Lesson | undefined;
  let failures = 0;
  for (const workspaceId of await usedFirst(source, meter)) {
    let isUsed = false;
    const requested = { meter, range: { start, end }, workspaceIds: [workspaceId] };
    const refused = await sumUp(source, requested, ({ traces }) => {
      isUsed ||= traces > 0;
    });
    if (isUsed) {
      if (before?.state !== "counted" && (await ignoresWorkspace(source, { meter, range: { start, end } })))
        return {
          state: "not_known",
          evidence: `it responds with ${METER_NAME[meter]} for a workspace that does not exist, so it ignores X-Tenant-Id`,
        };
      return { state: "counted", evidence: `it responds with ${METER_NAME[meter]}` };
    }
    if (refused === undefined) continue;
    if (refused.state === "counted") return refused;
    if (refused.state === "not_known") unusable ??= refused;
    else refusals.push(refused);
    if (refused.mayPass && ++failures === MOST_FAILURES) break;
  }
  // No other workspace shows such usage, but the one with the unusable response may have some.
  if (unusable !== undefined) return unusable;
  const [refused] = refusals;
  if (refused !== undefined && refusals.length === source.workspaceIds.length)
    return unlessLost(source, refused);
  return none(source, meter);
}

const NO_WORKSPACE = "00000000-0000-4000-8000-000000000000";

/** Responses name no workspace, so the same usage would be stored for each. A refusal shows that the header is read. */
async function ignoresWorkspace(
  source: OpenSource,
  requested: { meter: keyof typeof LOOKS; range: Interval },
): Promise<boolean> {
  let isUsed = false;
  try {
    await sumUp(source, { ...requested, workspaceIds: [NO_WORKSPACE] }, ({ traces }) => {
      isUsed ||= traces > 0;
    });
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
  }
  return isUsed;
}

/** A counted meter is tested again every hour. Workspaces that used it come first, so mostly one request is enough. */
async function usedFirst({ store, sourceId, workspaceIds }: OpenSource, meter: Meter): Promise<string[]> {
  const used = await workspacesWith(store.db, { sourceId, meter });
  return [...workspaceIds].sort((a, b) => Number(used.has(b)) - Number(used.has(a)));
}

function none(source: OpenSource, meter: LearnableMeter): Promise<Lesson> {
  const evidence = `it responds no ${METER_NAME[meter]}`;
  return unlessLost(source, { state: "not_counted", evidence, isEmpty: true });
}

/** If the key lost a workspace, empty or refused responses do not show that the server lacks the meter. */
async function unlessLost({ store, config }: OpenSource, lesson: Lesson): Promise<Lesson> {
  const lost = (await lostWorkspaces(store.db)).find((one) => one.source === config.slug && one.isUnread);
  if (lost === undefined) return lesson;
  const evidence = `${lesson.evidence}, but the key does not read workspace ${lost.workspaceId}`;
  return { state: "not_known", evidence };
}

/**
 * Passes the sum of each bucket of the range to `onBucket`. Returns a lesson if the server refuses the meter or responds with
 * something else.
 */
async function sumUp(
  source: OpenSource,
  {
    meter,
    range,
    workspaceIds = source.workspaceIds,
  }: { meter: Meter; range: Interval; workspaceIds?: readonly string[] },
  onBucket: (sum: { bucketStart: number | null; traces: number }) => void,
): Promise<Lesson | undefined> {
  const window = { ...range, stride: strideOfRange(range.end - range.start) };
  const members = workspaceIds.map((workspaceId) => ({ workspaceId }));
  const requests: UnstoredRequest[] = requestsFor({ meter, groupBy: "workspace", window, members });
  try {
    for (const request of requests) {
      // Sums are kept until the response is complete, because an attempt that breaks off is repeated.
      const received = new Map<number | null, number>();
      const onRecords = (records: readonly UsageRecord[]) => {
        for (const { bucketStart, traces } of records)
          received.set(bucketStart, (received.get(bucketStart) ?? 0) + traces);
      };
      const send = () => {
        received.clear();
        return readRecords(source, request, { onRecords });
      };
      await (meter === "traces" ? sendRequest : sendAside)(source, send, ATTEMPTS);
      for (const [bucketStart, traces] of received) onBucket({ bucketStart, traces });
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof PlatformError) || isKeyRefused(error, meter)) throw error;
    return lessonOf(meter, error);
  }
}

/** The lesson of an unusable response, which must not block traces. */
function lessonOf(meter: Meter, error: PlatformError): Lesson {
  const { status, locations, message } = error;
  // A failed request for traces shows nothing about another meter. A refused key was thrown before.
  if (meter === "traces") return { state: "not_known", evidence: message };
  if (isMeterRefused(meter, error) || status === 403)
    return { state: "not_counted", evidence: `it refuses it: ${message}` };
  if (status === 404 || status === 405)
    return { state: "not_counted", evidence: `it does not have it: ${message}` };
  // A first record without measures shows that the server ignores `kind`. A later one is only wrong.
  if (locations.includes("usage.0.measures"))
    return { state: "not_counted", evidence: `its response has no measure of deployments: ${message}` };
  // Records exist, so usage exists. Its load shows which of them cannot be read.
  if (METER[meter].isByWorkspace && error.isAboutRecords)
    return {
      state: "counted",
      evidence: `it responds with ${METER_NAME[meter]}, not all of which can be read: ${message}`,
    };
  return { state: "not_known", evidence: message, mayPass: error.retryable };
}

function isFrom(version: string, least: readonly number[]): boolean {
  const parts = /^v?(\d+)\.(\d+)\.(\d+)/.exec(version)?.slice(1).map(Number);
  if (parts === undefined) return false;
  const differing = least.findIndex((part, i) => part !== parts[i]);
  return differing === -1 || (parts[differing] as number) > (least[differing] as number);
}

function count(number: number): string {
  return number.toLocaleString("en-US");
}
