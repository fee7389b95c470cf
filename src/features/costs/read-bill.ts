import { PlatformError } from "../../core/base/errors.ts";
import { type CalendarMonth, daysOfMonth, monthAt, monthBefore } from "../../core/domain/months/month.ts";
import { PROVIDER_METERS, PROVIDER_USAGE, totalsOfMonth } from "../../core/domain/months/provider.ts";
import type { Reach } from "../../core/domain/planning/windows.ts";
import { intervalOf } from "../../core/domain/time/days.ts";
import { DAY_MS } from "../../core/domain/time/stride.ts";
import { GROUPINGS } from "../../core/domain/usage/record.ts";
import type { OnProgress } from "../../core/pipeline/extract/sequentially.ts";
import { refetchDays } from "../../core/pipeline/proof/control.ts";
import { isKeyRefused } from "../../core/pipeline/source/refused-key.ts";
import { type OpenSource, statesOf } from "../../core/pipeline/source/source.ts";
import { configuredWorkspaces } from "../../core/store/access/workspaces.ts";
import { knownFindings, type NamedFinding } from "../../core/store/proof/control-findings.ts";
import { endUnread } from "../../core/store/proof/end-differences.ts";
import { drawFetchToken, storeNow } from "../../core/store/work/fetch-ledger.ts";
import {
  type BillPart,
  billPartsOf,
  noteBillPart,
  STATEMENT_PARTS,
  type StatementPart,
} from "./bill-terms.store.ts";
import { readAuditLog } from "./logged-changes.ts";
import {
  type ComparedTotal,
  compareProvider,
  keepProviderTotals,
  monthsToRead,
} from "./provider-totals.store.ts";
import { readStatementPart } from "./read-statement.ts";
import {
  type ReadPart,
  readAllWorkspaces,
  readBillingPeriod,
  readNames,
  readResourceTags,
  readUsageLimits,
  refusalOf,
  requestBill,
} from "./read-terms.ts";

interface FailedPart {
  readonly part: BillPart;
  readonly code: string;
  readonly message: string;
}

export interface ReadBill {
  /** Undefined: it failed, or was refused within the last day. */
  readonly provider: ProviderResult | undefined;
  /** Lacks parts that failed, or were refused within the last day. */
  readonly parts: Readonly<Partial<Record<ListedPart, ReadPart>>>;
  readonly failed: readonly FailedPart[];
}

type ListedPart = Exclude<BillPart, "provider_totals">;

const READERS: Readonly<
  Record<Exclude<ListedPart, StatementPart>, (source: OpenSource) => Promise<ReadPart>>
> = {
  billing_period: readBillingPeriod,
  usage_limits: readUsageLimits,
  resource_tags: readResourceTags,
  all_workspaces: readAllWorkspaces,
  names: readNames,
  audit_log: readAuditLog,
};

/**
 * Compares the bill's totals with stored usage, and stores usage limits, billing period, tags, names and snapshots of the
 * platform's statement. A failed part does not stop the others. `isPatient`: a refused part is not requested again for a day.
 */
export async function readBill(
  source: OpenSource,
  { reach, isPatient }: { reach: Reach; isPatient: boolean },
  onProgress?: OnProgress,
): Promise<ReadBill> {
  const learned = await billPartsOf(source.store.db, source.sourceId);
  const failed: FailedPart[] = [];
  const read = async <T>(part: BillPart, work: () => Promise<T>): Promise<T | undefined> => {
    const before = learned.find((one) => one.part === part);
    if (isPatient && before?.isDue === false) return undefined;
    // Documented once only, and gone since, so nobody may request it more than once a day.
    if (part === "engine_units" && before?.isRecent === true) return undefined;
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      const { code, message } = error;
      failed.push({ part, code, message });
      return undefined;
    }
  };
  const parts: Partial<Record<ListedPart, ReadPart>> = {};
  const keep = async (part: ListedPart, work: () => Promise<ReadPart>) => {
    const found = await read(part, work);
    if (found !== undefined) parts[part] = found;
  };
  for (const part of STATEMENT_PARTS) await keep(part, () => readStatementPart(source, part));
  for (const [part, work] of Object.entries(READERS)) await keep(part as ListedPart, () => work(source));
  const provider = await read("provider_totals", () => checkProvider(source, reach, onProgress));
  return { provider, parts, failed };
}

/** Time until a month that ended is final in the platform's books (docs/platform.md, Buckets). */
const BOOKS_CLOSE_AFTER_MS = 4 * DAY_MS;

/** Number of latest months that each run compares, because their totals may still change. */
const LATEST: Readonly<Record<Reach, number>> = { month: 2, quarter: 3, all: Number.POSITIVE_INFINITY };

interface ComparedMonth {
  readonly month: string;
  readonly totals: readonly ComparedTotal[];
}

export interface ProviderResult {
  /** Why the server does not show its totals. Null: it shows them. */
  readonly refusal: string | null;
  readonly months: readonly ComparedMonth[];
  readonly findings: readonly NamedFinding[];
  readonly failed: readonly { readonly month: string; readonly code: string; readonly message: string }[];
  readonly requests: number;
  readonly restated: number;
}

/**
 * Compares months of traces and deployment usage by workspace with the totals of the billing provider. If a total differs, the total and the
 * workspace's days are requested again. If they are then equal, it was a restatement. Otherwise the difference is stored with
 * both numbers, and nothing is repaired. `reach`: the last two or three months, or all. Months of `monthsToRead` are always
 * included.
 */
export async function checkProvider(
  source: OpenSource,
  reach: Reach,
  onProgress: OnProgress = () => {},
): Promise<ProviderResult> {
  const { sourceId, store, dataStart, workspaceIds } = source;
  const { db } = store;
  await endUnread(db, { sourceId, workspaceIds });
  const over = monthsOver(dataStart, (await storeNow(db)) - BOOKS_CLOSE_AFTER_MS);
  const latest = over.slice(0, LATEST[reach]);
  const due = [...new Set([...latest, ...(await monthsToRead(db, { sourceId, months: over }))])];
  const known = await knownFindings(db, { sourceId, range: ALL_TIME, kinds: ["provider_total"] });
  const [months, failed]: [ComparedMonth[], ProviderResult["failed"][number][]] = [[], []];
  let refusal: string | null = null;
  let [requests, restated, done] = [0, 0, 0];
  for (const month of due.sort((a, b) => a.start.localeCompare(b.start))) {
    try {
      const checked = await checkMonth(source, { month, known });
      requests += checked.requests;
      if ("refusal" in checked) {
        refusal = checked.refusal;
        break;
      }
      restated += checked.restated;
      months.push({ month: month.name, totals: checked.totals });
    } catch (error) {
      if (!(error instanceof PlatformError) || isKeyRefused(error)) throw error;
      failed.push({ month: month.name, code: error.code, message: error.message });
      // After several failures the provider is probably down, so other months are not requested.
      if (failed.length >= MOST_FAILURES) break;
    }
    onProgress({ done: ++done, total: due.length });
  }
  const findings = await knownFindings(db, { sourceId, range: ALL_TIME, kinds: ["provider_total"] });
  return { refusal, months, findings, failed, requests, restated };
}

const MOST_FAILURES = 3;
const ALL_TIME = { start: 0, end: 8.64e15 / 2 };

function monthsOver(dataStart: number, before: number): CalendarMonth[] {
  const months: CalendarMonth[] = [];
  for (
    let month = monthBefore(monthAt(before));
    Date.parse(month.start) >= dataStart;
    month = monthBefore(month)
  ) {
    months.push(month);
  }
  return months;
}

async function checkMonth(
  source: OpenSource,
  { month, known }: { month: CalendarMonth; known: readonly NamedFinding[] },
) {
  const { store, sourceId } = source;
  const first = await readMonth(source, month);
  if ("refusal" in first) return { refusal: first.refusal, requests: 1 };
  const looked = await compareProvider(store.db, { sourceId, month, totals: first.totals });
  const doubtful = looked.filter((one) => one.outcome === "differs" && !isKnown(one, month, known));
  if (doubtful.length === 0) {
    const totals = await keepProviderTotals(store, { sourceId, month, ...first });
    return { totals, requests: 1, restated: 0 };
  }
  const refetched = await refetchMonth(source, month, doubtful);
  const again = await readMonth(source, month);
  const requests = 2 + refetched.requests;
  if ("refusal" in again) return { refusal: again.refusal, requests };
  const totals = await keepProviderTotals(store, { sourceId, month, ...again });
  return { totals, requests, restated: refetched.restated };
}

async function readMonth(source: OpenSource, month: CalendarMonth) {
  const { store, sourceId, billing, signal } = source;
  const period = intervalOf(daysOfMonth(month));
  const requested = await requestBill(source, async () => ({
    fetchToken: await drawFetchToken(store.db),
    readings: await billing.providerUsage({ ...period, signal }),
  }));
  await noteBillPart(store.db, { sourceId, part: "provider_totals", refusal: refusalOf(requested) });
  if ("refusal" in requested) return requested;
  const { fetchToken, readings } = requested.response;
  const known = await configuredWorkspaces(store.db, sourceId);
  return {
    fetchToken,
    totals: totalsOfMonth(readings, {
      month: period,
      known,
      // A server without deployments has no metric of them.
      ...(source.meters.has("deployments") ? { expected: PROVIDER_METERS } : {}),
    }),
  };
}

function isKnown(one: ComparedTotal, { start }: CalendarMonth, known: readonly NamedFinding[]): boolean {
  return known.some(
    (finding) =>
      finding.scopeId === one.scopeId &&
      finding.measure === PROVIDER_USAGE[one.meter ?? "traces"].measure &&
      finding.start === Date.parse(start) &&
      finding.storedTraces === one.storedTraces &&
      finding.controlTraces === one.value,
  );
}

async function refetchMonth(source: OpenSource, month: CalendarMonth, doubtful: readonly ComparedTotal[]) {
  const period = intervalOf(daysOfMonth(month));
  const sides = [];
  for (const meter of new Set(PROVIDER_METERS.map((one) => PROVIDER_USAGE[one].meter))) {
    const isOf = (one: ComparedTotal) => one.meter !== null && PROVIDER_USAGE[one.meter].meter === meter;
    const own = new Set(doubtful.filter(isOf).map((one) => one.workspaceId));
    if (own.size === 0) continue;
    const states = (await statesOf(source, "day", GROUPINGS, meter)).filter((one) =>
      own.has(one.workspaceId),
    );
    sides.push({ meter, states, days: states.map(({ scopeId }) => ({ scopeId, ...period })) });
  }
  return refetchDays(source, sides);
}
