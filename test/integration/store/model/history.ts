import { expect } from "vitest";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import type { Meter } from "../../../../src/core/domain/usage/meter.ts";
import { GROUPINGS } from "../../../../src/core/domain/usage/record.ts";
import { noteAccess } from "../../../../src/core/store/access/workspace-access.ts";
import { applyListing } from "../../../../src/core/store/access/workspaces.ts";
import { failScopes } from "../../../../src/core/store/catalog/failures.ts";
import { ensureScopes, scopeStates } from "../../../../src/core/store/catalog/scopes.ts";
import { forgetCapability, learnCapability } from "../../../../src/core/store/catalog/server-capabilities.ts";
import { type LoadResult, loadResponse } from "../../../../src/core/store/load/load.ts";
import { beginFetch, drawFetchToken } from "../../../../src/core/store/work/fetch-ledger.ts";
import { expectTrueDigests } from "../digests.ts";
import { createSource, FIRST_DAY, LOADED_STRIDES, type StoreBundle } from "../setup.ts";
import { expectTrueState } from "../state.ts";
import {
  type Command,
  collect,
  listedName,
  type Question,
  recordsOf,
  WORKSPACES,
  windowOf,
  workspacesOf,
} from "./commands.ts";
import { expectedLines } from "./expected.ts";
import type { Lines } from "./lines.ts";
import { Model, type ModelResponse, type ModelResult } from "./model.ts";
import { showMeter } from "./shown-meter.ts";
import { takeSnapshot } from "./snapshot.ts";
import { type Fault, intercepted, type Trace, withFault } from "./statements.ts";

export const SETTLE_AFTER_MS = DAY_MS;
const SHOWN = { firstDay: FIRST_DAY, hourlyUntil: FIRST_DAY + 2 * DAY_MS };

export interface Delivery {
  /** Undefined if the fault ended the load. */
  readonly result: LoadResult | undefined;
  readonly trace: Trace;
  readonly error: unknown;
}

interface InFlight {
  readonly question: Question;
  readonly response: ModelResponse;
}

export class History {
  readonly model: Model;
  readonly #bundle: StoreBundle;
  readonly #meter: Meter;
  readonly sourceId: number;
  readonly #scopeIds: ReadonlyMap<string, number>;
  #now = FIRST_DAY + 2 * DAY_MS + 22 * HOUR_MS;
  /** Answered questions, each until its last delivery. */
  readonly #inFlight: InFlight[] = [];
  /** Responses that a second fetch may confirm. */
  readonly #unconfirmed: (InFlight & { readonly fullyDeleted: readonly string[] })[] = [];

  private constructor(
    bundle: StoreBundle,
    meter: Meter,
    sourceId: number,
    scopeIds: ReadonlyMap<string, number>,
  ) {
    this.#bundle = bundle;
    this.#meter = meter;
    this.model = new Model({
      workspaceIds: WORKSPACES,
      settleAfterMs: SETTLE_AFTER_MS,
      zerosDelete: meter !== "traces",
    });
    this.sourceId = sourceId;
    this.#scopeIds = scopeIds;
  }

  static async begin(bundle: StoreBundle, meter: Meter = "traces"): Promise<History> {
    const sourceId = await createSource(bundle, { workspaceIds: WORKSPACES, dataStart: FIRST_DAY });
    await showMeter(bundle, meter);
    await ensureScopes(bundle.store.db, { sourceId, meter, groupings: GROUPINGS, strides: LOADED_STRIDES });
    const scopes = await scopeStates(bundle.store.db, {
      sourceId,
      meter,
      groupings: GROUPINGS,
      strides: LOADED_STRIDES,
    });
    const ids = scopes.map((s) => [`${s.workspaceId} ${s.groupBy} ${s.stride}`, s.scopeId] as const);
    return new History(bundle, meter, sourceId, new Map(ids));
  }

  async run(command: Command): Promise<void> {
    switch (command.do) {
      case "request": {
        const response = await this.request(command.question, command.rows, command.advance);
        this.#inFlight.push({ question: command.question, response });
        return;
      }
      case "load": {
        const response = await this.request(command.question, command.rows, command.advance);
        return this.#deliverThrough({ question: command.question, response }, command.fault);
      }
      case "deliver": {
        const item = this.#inFlight[command.pick % this.#inFlight.length];
        if (item === undefined) return;
        if (!command.again) this.#inFlight.splice(this.#inFlight.indexOf(item), 1);
        return this.#deliverThrough(item, command.fault);
      }
      case "fail": {
        const failed = this.#take(command.pick);
        if (failed !== undefined) await this.fail(failed.response);
        return;
      }
      case "lose":
        this.#take(command.pick);
        return;
      case "confirm":
        return this.#confirm(command);
      case "list": {
        const workspaces = WORKSPACES.flatMap((id, i) =>
          command.listed & (1 << i)
            ? [{ id, name: listedName(command.names[i] as number), isDeleted: command.deleted && i === 0 }]
            : [],
        );
        return this.list(workspaces, command.advance, command.late);
      }
      case "name":
        return this.name(workspacesOf({ workspaces: command.named }), command.advance, command);
      case "settle":
        this.model.settleAfterMs = command.afterMs;
        return;
      case "capability": {
        const capability = `no_${command.stride}` as const;
        const { db } = this.#bundle.store;
        if (command.known)
          await learnCapability(db, { sourceId: this.sourceId, capability, evidence: "test" });
        else await forgetCapability(db, { sourceId: this.sourceId, capability });
        if (command.known) this.model.capabilities.add(capability);
        else this.model.capabilities.delete(capability);
      }
    }
  }

  async request(
    question: Question,
    rows: Parameters<typeof recordsOf>[1],
    advance: number,
    confirms?: ModelResponse["confirms"],
  ): Promise<ModelResponse> {
    this.#now += advance;
    const window = windowOf(question);
    const { groupBy } = question;
    const workspaceIds = workspacesOf(question);
    const { fetchNumber } = await beginFetch(this.#bundle.store.db, {
      meter: this.#meter,
      sourceId: this.sourceId,
      purpose: "load",
      groupBy,
      window,
      workspaces: workspaceIds.length,
    });
    await this.#bundle.reader.query(
      "UPDATE usage.fetch SET fetched_at = $2, finished_at = $2 WHERE fetch_number = $1",
      [fetchNumber, new Date(this.#now)],
    );
    const records = recordsOf(question, rows);
    return { ...window, groupBy, workspaceIds, records, fetchNumber, fetchedAt: this.#now, confirms };
  }

  async #deliverThrough(item: InFlight, fault: Fault | null): Promise<void> {
    await this.deliver(item, fault);
    if (fault?.kind !== "die") return;
    await this.check();
    await this.deliver(item, null);
  }

  /** Loads a response into store and model, unless the fault stops it, and compares what the load reports. */
  async deliver(item: InFlight, fault: Fault | null): Promise<Delivery> {
    const { response } = item;
    const { interceptor, trace } = withFault(fault, this.#bundle.reader);
    let result: LoadResult | undefined;
    let error: unknown;
    try {
      result = await intercepted(interceptor, () => this.load(response));
    } catch (thrown) {
      error = thrown;
      if (fault?.kind !== "die") throw thrown;
    }
    // One transaction learns the ids, one statement their names, if there are any, one keeps proof of access, and the next
    // transaction replaces the window.
    const naming = response.records.some(({ name }) => name !== null) ? 2 : 1;
    const learning = response.records.length > 0 ? naming + 1 : 0;
    const commits = result === undefined ? trace.commits : Number.POSITIVE_INFINITY;
    if (commits >= 1) this.model.learn(response);
    if (commits >= naming) this.model.learnNames(response);
    if (commits >= learning) this.model.see(response);
    if (commits <= learning) return { result, trace, error };
    const expected = this.model.load(response);
    if (result !== undefined && fault?.kind !== "lose") {
      expect(this.#withWorkspaces(response, result)).toEqual(expected);
    }
    if (expected.outcome === "unconfirmed")
      this.#unconfirmed.push({ ...item, fullyDeleted: expected.fullyDeleted });
    if (expected.outcome === "loaded") await this.#expectConserved(response, expected);
    return { result, trace, error };
  }

  load(response: ModelResponse): Promise<LoadResult> {
    const { groupBy, stride, start, end, fetchNumber, fetchedAt, confirms } = response;
    return loadResponse(this.#bundle.store, {
      meter: this.#meter,
      sourceId: this.sourceId,
      groupBy,
      window: { stride, start, end },
      fetchToken: { fetchNumber, fetchedAt },
      receivedAt: fetchedAt,
      scopeIds: this.#scopesOf(response),
      response: collect(response),
      settleAfterMs: this.model.settleAfterMs,
      confirms: confirms && {
        since: confirms.since,
        fullyDeleted: this.#scopesOf({ ...response, workspaceIds: confirms.fullyDeleted }),
      },
    });
  }

  happened(response: ModelResponse, result: LoadResult): void {
    this.model.learn(response);
    this.model.learnNames(response);
    this.model.see(response);
    expect(this.#withWorkspaces(response, result)).toEqual(this.model.load(response));
  }

  async list(
    workspaces: readonly { id: string; name: string | null; isDeleted: boolean }[],
    advance: number,
    late = 0,
  ): Promise<void> {
    this.#now += advance;
    const { fetchNumber } = await drawFetchToken(this.#bundle.store.db);
    const fetchToken = { fetchNumber, fetchedAt: this.#now - late };
    await applyListing(this.#bundle.store, {
      sourceId: this.sourceId,
      workspaces: workspaces.map(({ id, ...rest }) => ({ workspaceId: id, ...rest })),
      fetchToken,
    });
    this.model.list({ workspaces, ...fetchToken });
  }

  async name(
    named: readonly string[],
    advance: number,
    { late = 0, isStatistics = false }: { late?: number; isStatistics?: boolean } = {},
  ): Promise<void> {
    this.#now += advance;
    const at = this.#now - late;
    const until = floorToGrid(at, HOUR_MS);
    const { sourceId } = this;
    const proof = { sourceId, requested: WORKSPACES, named, at, until, receivedAt: at, isStatistics };
    await noteAccess(this.#bundle.store, proof);
    this.model.nameOver({ named, at, until, isStatistics });
  }

  async check(): Promise<void> {
    const { now, lines } = await takeSnapshot(this.#bundle.reader, SHOWN);
    const expected = expectedLines(this.model, { ...SHOWN, now });
    // Compared as text: expect takes ten times as long, and is needed only to show a difference.
    const differs = (name: string) => lines[name]?.join("\n") !== expected[name]?.join("\n");
    if ([...Object.keys(lines), ...Object.keys(expected)].some(differs)) expect(lines).toEqual(expected);
    await expectTrueDigests(this.#bundle.reader);
    await expectTrueState(this.#bundle.reader);
  }

  async lines(): Promise<Lines> {
    return (await takeSnapshot(this.#bundle.reader, SHOWN)).lines;
  }

  #take(pick: number): InFlight | undefined {
    return this.#inFlight.splice(pick % Math.max(this.#inFlight.length, 1), 1)[0];
  }

  async fail(response: ModelResponse): Promise<void> {
    const { start, end, fetchNumber, fetchedAt } = response;
    await failScopes(this.#bundle.store, {
      scopeIds: this.#scopesOf(response),
      period: { start, end },
      fetchToken: { fetchNumber, fetchedAt },
      state: "failed",
      code: "server_error",
      message: "test",
    });
    this.model.fail(response);
  }

  /** As extract does if a full-window deletion needs confirmation: newer proof of access, then a second fetch. */
  async #confirm({ pick, listed, advance, rows }: Command & { do: "confirm" }): Promise<void> {
    const [item] = this.#unconfirmed.splice(pick % Math.max(this.#unconfirmed.length, 1), 1);
    if (item === undefined) return;
    const { question, fullyDeleted, response: first } = item;
    if (listed > 0) {
      await this.list(
        workspacesOf({ workspaces: listed }).map((id) => ({ id, name: null, isDeleted: false })),
        advance,
      );
      await this.name(workspacesOf({ workspaces: listed }), 0);
    }
    const second = await this.request(question, rows === "same" ? [] : rows, advance, {
      fullyDeleted,
      since: first.fetchedAt,
    });
    const response = rows === "same" ? { ...second, records: first.records } : second;
    await this.deliver({ question, response }, null);
  }

  #scopesOf({
    workspaceIds,
    groupBy,
    stride,
  }: Pick<ModelResponse, "workspaceIds" | "groupBy" | "stride">): number[] {
    return workspaceIds.map((id) => this.#scopeIds.get(`${id} ${groupBy} ${stride}`) as number);
  }

  #withWorkspaces(response: ModelResponse, result: LoadResult): ModelResult {
    const scopeIds = this.#scopesOf(response);
    const named = (ids: readonly number[]) =>
      ids.map((id) => response.workspaceIds[scopeIds.indexOf(id)] as string).sort();
    return { ...result, unverified: named(result.unverified), fullyDeleted: named(result.fullyDeleted) };
  }

  /** Rule 6 of docs/rules.md, without the model: the view shows the sum of traces that the response had. */
  async #expectConserved(response: ModelResponse, { unverified }: ModelResult): Promise<void> {
    const { rows } = await this.#bundle.reader.query(
      `SELECT coalesce(sum(traces), 0)::float8 AS sum FROM reporting_detail.usage_record
       WHERE group_by = $1 AND stride = $2 AND workspace_id = ANY ($3) AND period_start >= $4 AND period_start < $5`,
      [
        response.groupBy,
        response.stride,
        response.workspaceIds.filter((id) => !unverified.includes(id)),
        new Date(response.start),
        new Date(response.end),
      ],
    );
    expect(rows[0].sum).toBe(response.records.reduce((sum, record) => sum + record.traces, 0));
  }
}
