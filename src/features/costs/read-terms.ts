import { PlatformError } from "../../core/base/errors.ts";
import { type CalendarMonth, monthAt, monthBefore } from "../../core/domain/months/month.ts";
import { DAY_MS, floorToGrid } from "../../core/domain/time/stride.ts";
import type { Dimension } from "../../core/domain/usage/record.ts";
import { sendAside } from "../../core/pipeline/source/send-request.ts";
import type { OpenSource } from "../../core/pipeline/source/source.ts";
import type { ListedNames } from "../../core/platform/billing/names.ts";
import type { WireLimit } from "../../core/platform/billing/organization.ts";
import type { LineKind, WireLine } from "../../core/platform/billing/statement.ts";
import { learnListedNames, namedDimensions } from "../../core/store/catalog/entity-names.ts";
import { keepListedKeys } from "../../core/store/catalog/listed-keys.ts";
import { drawFetchToken, storeNow } from "../../core/store/work/fetch-ledger.ts";
import {
  keepBillingPeriod,
  keepUnloadedWorkspaces,
  keepUsageLimits,
  noteBillPart,
  type StoredLimit,
  unloadedWorkspaces,
} from "./bill-terms.store.ts";
import { keepWorkspaceTags } from "./resource-tags.store.ts";
import { keepStatementLines } from "./statement-lines.store.ts";

export interface ReadPart {
  readonly read: number;
  readonly refusal: string | null;
}

/**
 * Reads the usage limits of the organization and its workspaces, or of each workspace if the key may not. Also reads which
 * workspaces reject traces now. A refused workspace is left out if another one responds.
 */
export async function readUsageLimits(source: OpenSource): Promise<ReadPart> {
  const { billing, sourceId, signal, store, workspaceIds } = source;
  const limits = createLimits();
  const ofAll = await requestBill(source, () => billing.organizationLimits({ signal }));
  if ("response" in ofAll) limits.add(ofAll.response, "");
  let refusal = refusalOf(ofAll);
  for (const workspaceId of workspaceIds) {
    const about = { workspaceId, signal };
    const own = "response" in ofAll ? ofAll : await requestBill(source, () => billing.workspaceLimits(about));
    if ("response" in own && own !== ofAll) limits.add(own.response, workspaceId);
    const rejection = await requestBill(source, () => billing.workspaceRejection(about));
    if ("response" in rejection && rejection.response.isRejecting)
      limits.reject(workspaceId, rejection.response);
    if ("response" in own || "response" in rejection) refusal = null;
    // If the server lacks these routes, it lacks them for every workspace.
    else if (refusal !== null) break;
  }
  await noteBillPart(store.db, { sourceId, part: "usage_limits", refusal });
  if (refusal !== null) return { read: 0, refusal };
  const found = limits.all();
  await keepUsageLimits(store, { sourceId, limits: found });
  return { read: found.length, refusal: null };
}

function createLimits() {
  const kept = new Map<string, StoredLimit>();
  const keyOf = (workspaceId: string, limitType: string) => JSON.stringify([workspaceId, limitType]);
  return {
    add(limits: readonly WireLimit[], unnamed: string): void {
      for (const { workspaceId = unnamed, limitType, value } of limits) {
        const before = kept.get(keyOf(workspaceId, limitType))?.value ?? null;
        // Several limits may have one name, such as one for each project. Usage reaches the lowest first.
        const lowest = before !== null && (value === null || before < value) ? before : value;
        kept.set(keyOf(workspaceId, limitType), {
          workspaceId,
          limitType,
          value: lowest,
          isRejecting: false,
        });
      }
    },
    reject(
      workspaceId: string,
      { limitType: type, value }: { limitType: string | null; value: number | null },
    ): void {
      const limitType = type ?? "not named";
      const before = kept.get(keyOf(workspaceId, limitType));
      kept.set(keyOf(workspaceId, limitType), {
        workspaceId,
        limitType,
        isRejecting: true,
        value: before?.value ?? value,
      });
    },
    all: () => [...kept.values()],
  };
}

export async function readBillingPeriod(source: OpenSource): Promise<ReadPart> {
  const { billing, sourceId, signal, store } = source;
  const requested = await requestBill(source, () => billing.billingPeriod({ signal }));
  await noteBillPart(store.db, { sourceId, part: "billing_period", refusal: refusalOf(requested) });
  if ("refusal" in requested) return { read: 0, refusal: requested.refusal };
  const { endsAt, fleetLimit: lines, ...plan } = requested.response;
  await keepLines(source, { kinds: ["fleet_limit"], month: monthAt(await storeNow(store.db)), lines });
  if (endsAt === null) return { read: 0, refusal: null };
  await keepBillingPeriod(store.db, { sourceId, endsAt, ...plan });
  return { read: 1, refusal: null };
}

export async function keepLines(
  { sourceId, store, log }: OpenSource,
  of: { kinds: readonly LineKind[]; month: CalendarMonth; lines: readonly WireLine[] },
): Promise<void> {
  const wrong = of.lines.filter(({ isWrong }) => isWrong);
  if (wrong.length > 0)
    log.warn(
      { code: "statement_refused", kinds: of.kinds, refused: wrong.length },
      `Values of the platform's statement cannot be read, such as ${wrong[0]?.remark}.`,
    );
  await keepStatementLines(store, { ...of, sourceId, month: of.month.start });
}

/**
 * Reads the tags of each workspace. Entries that are not tags of a resource are left out and logged. If only some workspaces
 * are refused, their stored tags stay.
 */
export async function readResourceTags(source: OpenSource): Promise<ReadPart> {
  const { billing, sourceId, signal, store, workspaceIds, log } = source;
  let read = 0;
  let refusal: string | null = null;
  let hasResponse = false;
  for (const workspaceId of workspaceIds) {
    const requested = await requestBill(source, () => billing.workspaceTags({ workspaceId, signal }));
    if ("refusal" in requested) {
      if (hasResponse) continue;
      // If the plan has no tags, no workspace has any.
      refusal = requested.refusal;
      break;
    }
    hasResponse = true;
    const { refused } = requested.response;
    if (refused.length > 0) {
      const about = { code: "tag_refused", workspaceId, refused: refused.length };
      log.warn(
        about,
        `Invalid tags of the workspace were left out, such as ${refused[0]}. No stored tag was removed.`,
      );
    }
    await keepWorkspaceTags(store, { sourceId, workspaceId, ...requested.response });
    read += requested.response.tags.length;
  }
  await noteBillPart(store.db, { sourceId, part: "resource_tags", refusal });
  return { read, refusal };
}

/**
 * Finds workspaces with usage this month or last that no sync loads. If the server requires workspace ids, its refusal is
 * remembered for a week.
 */
export async function readAllWorkspaces(source: OpenSource): Promise<ReadPart> {
  const { billing, sourceId, config, signal, store, workspaceIds, dataStart, clock } = source;
  const today = floorToGrid(clock.now(), DAY_MS);
  const current = monthAt(clock.now());
  let read = 0;
  for (const month of [current, monthBefore(current)]) {
    const [start, end] = [
      Math.max(Date.parse(month.start), dataStart),
      Math.min(Date.parse(month.end), today),
    ];
    if (start >= end) continue;
    const requested = await requestBill(
      source,
      () => billing.usageOfAll({ start, end, signal }),
      // An older server may fail without ids, which must not fail each night.
      [...LIST_REFUSALS, 500, 501],
    );
    if ("refusal" in requested) {
      await noteBillPart(store.db, { sourceId, part: "all_workspaces", refusal: requested.refusal });
      return { read, refusal: requested.refusal };
    }
    const loaded = new Set(workspaceIds);
    const found = [...requested.response]
      .filter(([workspaceId]) => !loaded.has(workspaceId))
      .map(([workspaceId, of]) => ({ workspaceId, ...of }));
    await keepUnloadedWorkspaces(store, { sourceId, monthStart: month.start, found });
    const left = await unloadedWorkspaces(store.db, { source: config.slug, monthStart: month.start });
    read += left.length;
  }
  await noteBillPart(store.db, { sourceId, part: "all_workspaces", refusal: null });
  return { read, refusal: null };
}

/**
 * Reads names of API keys, sandboxes and snapshots from the platform's lists: usage has only ids. A list that cannot be read
 * costs only its own names. A list that is refused for the first workspace is not requested for the others.
 */
export async function readNames(source: OpenSource): Promise<ReadPart> {
  const { billing, sourceId, signal, store, workspaceIds, log } = source;
  const used = await namedDimensions(store.db, sourceId);
  const fetchToken = await drawFetchToken(store.db);
  const sendMore = <T>(send: () => Promise<T>) => sendAside(source, send);
  let [read, part] = [0, 0];
  const keep = async (dimension: Dimension, { names, refused, keys = [] }: ListedNames) => {
    if (refused.length > 0)
      log.warn(
        { code: "name_refused", dimension, refused: refused.length },
        `Invalid entries of a list of names were left out, such as ${refused[0]}.`,
      );
    if (keys.length > 0) await keepListedKeys(store.db, { sourceId, keys });
    read += await learnListedNames(store, { sourceId, dimension, fetchToken, part: part++, names });
  };
  type List = readonly ["api_key" | "sandbox", readonly (() => Promise<ListedNames>)[]];
  const sandboxesOf = (kind: "boxes" | "snapshots"): List => [
    "sandbox",
    workspaceIds.map((workspaceId) => {
      return () => billing.workspaceSandboxes({ kind, workspaceId, signal, sendMore });
    }),
  ];
  const lists: readonly List[] = [
    // The organization's list comes first: it names most keys, and a key keeps its first name.
    ["api_key", [() => billing.organizationKeys({ signal })]],
    ["api_key", workspaceIds.map((workspaceId) => () => billing.workspaceKeys({ workspaceId, signal }))],
    sandboxesOf("boxes"),
    sandboxesOf("snapshots"),
  ];
  const refusals: (string | null)[] = [];
  for (const [dimension, requests] of lists) {
    if (!used.has(dimension)) continue;
    let refusal: string | null = null;
    for (const [nth, send] of requests.entries()) {
      const requested = await requestOptional(source, send);
      if ("response" in requested) await keep(dimension, requested.response);
      else if (nth === 0) refusal = requested.refusal;
      if (refusal !== null) break;
    }
    refusals.push(refusal);
  }
  const refusal = refusals.includes(null) ? null : (refusals[0] ?? null);
  await noteBillPart(store.db, { sourceId, part: "names", refusal });
  return { read, refusal };
}

/** Requests what no figure needs: whatever fails, or has another form than guessed, counts as refused and is logged. */
export async function requestOptional<T>(
  source: OpenSource,
  send: () => Promise<T>,
): Promise<BillResponse<T>> {
  try {
    return await requestBill(source, send, LIST_REFUSALS);
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    const { code, message: refusal } = error;
    source.log.warn({ code: "bill_part_not_read", reason: code }, `Not read for the bill: ${refusal}`);
    return { refusal };
  }
}

type BillResponse<T> =
  | { readonly response: T }
  | { readonly refusal: string; readonly status?: number | undefined };

/** The key may lack permissions for the bill, and the server may lack the route. */
const REFUSALS = [401, 403, 404, 405];
/** A server may also refuse a list that it does not have in this form. */
export const LIST_REFUSALS = [...REFUSALS, 400, 410, 422];

/** Requests a part of the bill. Returns a refusal, because the key may still read usage. Throws every other error. */
export async function requestBill<T>(
  source: OpenSource,
  send: () => Promise<T>,
  refusals: readonly number[] = REFUSALS,
): Promise<BillResponse<T>> {
  try {
    return { response: await sendAside(source, send) };
  } catch (error) {
    if (!(error instanceof PlatformError) || !refusals.includes(error.status ?? 0)) throw error;
    const { message: refusal, status } = error;
    // Another response may give the rest of the part, which then counts as read.
    source.log.info({ code: "bill_refused" }, `Not read for the bill: ${refusal}`);
    return { refusal, status };
  }
}

export function refusalOf(requested: BillResponse<unknown>): string | null {
  return "refusal" in requested ? requested.refusal : null;
}
