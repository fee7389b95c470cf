import { DAY_MS, HOUR_MS, STRIDE_MS, type Stride } from "../../../../src/core/domain/time/stride.ts";
import type { GroupBy } from "../../../../src/core/domain/usage/record.ts";

export interface ModelRecord {
  readonly workspaceId: string;
  readonly id: string;
  readonly name: string | null;
  readonly bucket: number;
  readonly traces: number;
}

export interface ModelResponse {
  readonly groupBy: GroupBy;
  readonly stride: Stride;
  readonly start: number;
  readonly end: number;
  readonly workspaceIds: readonly string[];
  readonly records: readonly ModelRecord[];
  readonly fetchNumber: number;
  readonly fetchedAt: number;
  readonly confirms?: { readonly fullyDeleted: readonly string[]; readonly since: number } | undefined;
}

interface Bucket {
  readonly fetchNumber: number;
  readonly fetchedAt: number;
  readonly final: boolean;
  readonly traces: ReadonlyMap<string, number>;
}

export interface Failed {
  readonly fetchNumber: number;
  readonly state: "failed" | "unverified";
  readonly attempts: number;
  readonly failedAt: number;
  readonly retryAt: number;
}

export interface ModelScope {
  readonly groupBy: GroupBy;
  readonly workspaceId: string;
  readonly stride: Stride;
  readonly buckets: Map<number, Bucket>;
  readonly failures: Map<number, Failed>;
  readonly withdrawn: Set<number>;
}

export interface Restated {
  readonly scope: ModelScope;
  readonly id: string;
  readonly bucket: number;
  readonly before: number | undefined;
  readonly after: number | undefined;
  readonly fetchNumber: number;
}

interface Named {
  readonly name: string;
  readonly bucket: number;
  readonly fetchNumber: number;
  readonly fetchedAt: number;
}

export interface Entity {
  readonly dimension: GroupBy;
  readonly id: string;
  readonly seen: number[];
  readonly named: Named[];
}

export interface ModelWorkspace {
  readableAt: number | undefined;
  readableSince: number | undefined;
  isDeleted: boolean;
  unlistedSince: number | undefined;
  /** A response over all of time until then named it; infinity: only shorter ones did. */
  usedBefore: number | undefined;
}

export interface ModelResult {
  readonly outcome: "loaded" | "discarded" | "unconfirmed" | "unverified";
  readonly inserted: number;
  readonly updated: number;
  readonly retired: number;
  readonly unchanged: number;
  readonly restated: number;
  readonly unverified: readonly string[];
  readonly fullyDeleted: readonly string[];
}

const TEN_MINUTES = 600_000;
const NONE = {
  inserted: 0,
  updated: 0,
  retired: 0,
  unchanged: 0,
  restated: 0,
  unverified: [],
  fullyDeleted: [],
};

export class Model {
  readonly scopes = new Map<string, ModelScope>();
  readonly workspaces = new Map<string, ModelWorkspace>();
  readonly entities = new Map<string, Entity>();
  readonly restatements: Restated[] = [];
  readonly capabilities = new Set<string>();
  settleAfterMs: number;
  readonly #zerosDelete: boolean;

  /** `zerosDelete`: a zero says as little as a record that is not there. So it is of all meters but traces. */
  constructor(known: { workspaceIds: readonly string[]; settleAfterMs: number; zerosDelete?: boolean }) {
    this.settleAfterMs = known.settleAfterMs;
    this.#zerosDelete = known.zerosDelete ?? false;
    for (const id of known.workspaceIds) {
      this.workspaces.set(id, {
        readableAt: undefined,
        readableSince: undefined,
        isDeleted: false,
        unlistedSince: undefined,
        usedBefore: undefined,
      });
      this.#entity("workspace", id);
    }
  }

  scope(workspaceId: string, groupBy: GroupBy, stride: Stride): ModelScope {
    const key = `${workspaceId} ${groupBy} ${stride}`;
    const scope = this.scopes.get(key) ?? {
      groupBy,
      workspaceId,
      stride,
      buckets: new Map(),
      failures: new Map(),
      withdrawn: new Set(),
    };
    this.scopes.set(key, scope);
    return scope;
  }

  learn({ groupBy, records }: ModelResponse): void {
    for (const { id, bucket } of records) this.#entity(groupBy, id).seen.push(bucket);
  }

  learnNames({ groupBy, records, fetchNumber, fetchedAt }: ModelResponse): void {
    for (const { id, name, bucket } of records) {
      if (name !== null) this.#entity(groupBy, id).named.push({ name, bucket, fetchNumber, fetchedAt });
    }
  }

  see({ records, fetchedAt }: ModelResponse): void {
    for (const { workspaceId } of records) {
      const workspace = this.#workspace(workspaceId);
      workspace.usedBefore ??= Number.POSITIVE_INFINITY;
      if (Math.max(workspace.unlistedSince ?? 0, workspace.readableSince ?? 0) > fetchedAt) continue;
      this.#prove(workspace, fetchedAt);
    }
  }

  load(response: ModelResponse): ModelResult {
    const { fetchNumber, fetchedAt, confirms } = response;
    const times = bucketsOf(response);
    const scopes = response.workspaceIds.map((id) => this.scope(id, response.groupBy, response.stride));
    const isOld = (scope: ModelScope) =>
      times.some((t) => (scope.buckets.get(t)?.fetchNumber ?? -1) >= fetchNumber);
    if (scopes.some(isOld)) return { outcome: "discarded", ...NONE };

    const isNamed = (id: string) => response.records.some((record) => record.workspaceId === id);
    const since = confirms?.since ?? fetchedAt - TEN_MINUTES;
    const isProven = (id: string) => {
      const { readableAt = -1, readableSince = 0 } = this.#workspace(id);
      return isNamed(id) || (readableAt >= since && readableSince <= (confirms?.since ?? fetchedAt));
    };
    const proven = scopes.filter((scope) => isProven(scope.workspaceId));
    const unread = scopes.filter((scope) => !proven.includes(scope));
    for (const scope of unread) {
      this.#fail(scope, { ...response, state: "unverified" });
      this.#invalidate(scope, { times, fetchedAfter: -1, at: fetchedAt });
    }
    const unverified = unread.map((scope) => scope.workspaceId);
    if (proven.length === 0) return { outcome: "unverified", ...NONE, unverified };

    const isGone = (traces: number | undefined) =>
      traces === undefined || (this.#zerosDelete && traces === 0);
    const fullyDeleted = proven
      .filter((scope) => {
        const before = times.flatMap((t) =>
          [...(scope.buckets.get(t)?.traces ?? [])].map(([id, n]) => ({ t, id, n })),
        );
        const nonZero = before.filter(({ n }) => n > 0);
        return (
          nonZero.length > 0 && nonZero.every(({ t, id }) => isGone(tracesOf(response, scope, t).get(id)))
        );
      })
      .map((scope) => scope.workspaceId);
    if (fullyDeleted.some((id) => !confirms?.fullyDeleted.includes(id))) {
      return { outcome: "unconfirmed", ...NONE, fullyDeleted };
    }

    const result = { outcome: "loaded" as const, ...NONE, unverified };
    for (const scope of proven) {
      for (const t of times) {
        const old = scope.buckets.get(t);
        const traces = tracesOf(response, scope, t);
        for (const id of new Set([...(old?.traces.keys() ?? []), ...traces.keys()])) {
          const [before, after] = [old?.traces.get(id), traces.get(id)];
          if (before === undefined) result.inserted++;
          else if (after === undefined) result.retired++;
          else if (before === after) result.unchanged++;
          else result.updated++;
          const wasFinal = old === undefined ? scope.withdrawn.has(t) : old.final;
          if (wasFinal && (before ?? 0) !== (after ?? 0)) {
            result.restated++;
            this.restatements.push({ scope, id, bucket: t, before, after, fetchNumber });
          }
        }
        const finalUntil = Math.floor((fetchedAt - this.settleAfterMs) / DAY_MS) * DAY_MS;
        const final = old?.final === true || t + STRIDE_MS[scope.stride] <= finalUntil;
        scope.buckets.set(t, { fetchNumber, fetchedAt, final, traces });
        if ((scope.failures.get(t)?.fetchNumber ?? fetchNumber) < fetchNumber) scope.failures.delete(t);
      }
    }
    return result;
  }

  fail(response: ModelResponse): void {
    for (const id of response.workspaceIds) {
      this.#fail(this.scope(id, response.groupBy, response.stride), { ...response, state: "failed" });
    }
  }

  #fail(scope: ModelScope, failure: ModelResponse & { state: Failed["state"] }): void {
    const { fetchNumber, fetchedAt, state } = failure;
    const times = bucketsOf(failure);
    const older = times
      .flatMap((t) => scope.failures.get(t) ?? [])
      .filter((f) => f.fetchNumber < fetchNumber);
    const attempts = Math.max(0, ...older.map((f) => f.attempts)) + 1;
    const retryAt = fetchedAt + Math.min(HOUR_MS * 2 ** (attempts - 1), DAY_MS);
    for (const t of times) {
      if ((scope.buckets.get(t)?.fetchNumber ?? -1) > fetchNumber) continue;
      if ((scope.failures.get(t)?.fetchNumber ?? -1) >= fetchNumber) continue;
      scope.failures.set(t, { fetchNumber, state, attempts, failedAt: fetchedAt, retryAt });
    }
  }

  list(listing: {
    workspaces: readonly { id: string; name: string | null; isDeleted: boolean }[];
    fetchNumber: number;
    fetchedAt: number;
  }): void {
    const { workspaces, fetchNumber, fetchedAt } = listing;
    const gone: string[] = [];
    for (const [id, workspace] of this.workspaces) {
      const listed = workspaces.find((w) => w.id === id);
      const isNews = (workspace.unlistedSince ?? 0) <= fetchedAt;
      if (listed === undefined) {
        gone.push(id);
        continue;
      }
      workspace.isDeleted = listed.isDeleted;
      if (isNews) workspace.unlistedSince = undefined;
      if (listed.name !== null)
        this.#entity("workspace", id).named.push({ name: listed.name, bucket: 0, fetchNumber, fetchedAt });
    }
    for (const id of gone) this.#lose(id, fetchedAt);
  }

  /** A response over all of time until `until`, by workspace, or the statistics of each workspace. */
  nameOver(response: { named: readonly string[]; at: number; until: number; isStatistics: boolean }): void {
    const { named, at, until, isStatistics } = response;
    for (const id of named) {
      const workspace = this.#workspace(id);
      if (!isStatistics)
        workspace.usedBefore = Math.min(workspace.usedBefore ?? Number.POSITIVE_INFINITY, until);
      if (Math.max(workspace.unlistedSince ?? 0, workspace.readableSince ?? 0) <= at)
        this.#prove(workspace, at);
    }
    this.#retry(at);
    for (const [id, { usedBefore, readableAt = -1 }] of this.workspaces) {
      if (named.includes(id) || readableAt < 0) continue;
      const wasDue = isStatistics
        ? usedBefore === undefined
        : usedBefore !== undefined && Math.min(usedBefore, readableAt + HOUR_MS) <= until;
      if (wasDue) this.#lose(id, at, { isUnlisted: false });
    }
  }

  #prove(workspace: ModelWorkspace, at: number): void {
    if (workspace.readableAt === undefined) workspace.readableSince = at;
    workspace.readableAt = Math.max(workspace.readableAt ?? 0, at);
  }

  /** What was fetched since the last proof may be empty because access was lost. */
  #lose(id: string, at: number, { isUnlisted = true } = {}): void {
    const workspace = this.#workspace(id);
    const { readableAt, unlistedSince } = workspace;
    if ((unlistedSince ?? 0) > at || (readableAt ?? 0) > at) return;
    if (readableAt === undefined && unlistedSince !== undefined) return;
    for (const scope of this.scopes.values()) {
      if (readableAt === undefined || scope.workspaceId !== id) continue;
      this.#invalidate(scope, { times: [...scope.buckets.keys()], fetchedAfter: readableAt, at });
    }
    workspace.readableAt = undefined;
    workspace.readableSince = at;
    if (isUnlisted) workspace.unlistedSince ??= at;
  }

  #invalidate(
    scope: ModelScope,
    invalidateProof: { times: number[]; fetchedAfter: number; at: number },
  ): void {
    for (const t of invalidateProof.times) {
      const bucket = scope.buckets.get(t);
      if (bucket === undefined || bucket.traces.size > 0 || bucket.fetchedAt <= invalidateProof.fetchedAfter)
        continue;
      scope.buckets.delete(t);
      if (bucket.final) scope.withdrawn.add(t);
      if (scope.failures.has(t)) continue;
      const { fetchNumber } = bucket;
      const [failedAt, retryAt] = [invalidateProof.at, invalidateProof.at + HOUR_MS];
      scope.failures.set(t, { fetchNumber, state: "unverified", attempts: 1, failedAt, retryAt });
    }
  }

  #retry(at: number): void {
    for (const { workspaceId, failures } of this.scopes.values()) {
      const { readableAt = -1 } = this.#workspace(workspaceId);
      for (const [t, failed] of failures) {
        if (failed.state !== "unverified" || readableAt <= failed.failedAt) continue;
        failures.set(t, { ...failed, retryAt: Math.min(failed.retryAt, at) });
      }
    }
  }

  nameOf(dimension: GroupBy, id: string): string | null {
    return namesOf(this.#entity(dimension, id)).at(-1)?.name ?? null;
  }

  #entity(dimension: GroupBy, id: string): Entity {
    const key = `${dimension} ${id}`;
    const entity = this.entities.get(key) ?? { dimension, id, seen: [], named: [] };
    this.entities.set(key, entity);
    return entity;
  }

  #workspace(id: string): ModelWorkspace {
    return this.workspaces.get(id) as ModelWorkspace;
  }
}

export function namesOf({ named }: Entity): Named[] {
  const sorted = named.toSorted(
    (a, b) => a.fetchNumber - b.fetchNumber || b.bucket - a.bucket || (a.name < b.name ? -1 : 1),
  );
  const ofFetches = sorted.filter((given, i) => given.fetchNumber !== sorted[i - 1]?.fetchNumber);
  return ofFetches.filter((given, i) => given.name !== ofFetches[i - 1]?.name);
}

export function bucketsOf({ start, end, stride }: { start: number; end: number; stride: Stride }): number[] {
  const size = STRIDE_MS[stride];
  return Array.from({ length: (end - start) / size }, (_, i) => start + i * size);
}

function tracesOf(response: ModelResponse, scope: ModelScope, bucket: number): Map<string, number> {
  const traces = new Map<string, number>();
  for (const record of response.records) {
    if (record.workspaceId !== scope.workspaceId || record.bucket !== bucket) continue;
    traces.set(record.id, (traces.get(record.id) ?? 0) + record.traces);
  }
  return traces;
}
