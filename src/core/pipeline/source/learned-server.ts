import type { Stride } from "../../domain/time/stride.ts";
import type { Meter } from "../../domain/usage/meter.ts";
import {
  capabilitiesOf,
  forgetCapability,
  learnCapability,
  type ServerCapability,
} from "../../store/catalog/server-capabilities.ts";
import {
  type LearnableMeter,
  type LearnedMeter,
  learnMeter,
  meterStartsOf,
} from "../../store/catalog/source-meters.ts";
import type { Database } from "../../store/db/database.ts";

export interface ServerFacts {
  /** Counted meters with their start, epoch ms. */
  readonly meters: ReadonlyMap<Meter, number>;
  readonly capabilities: ReadonlySet<ServerCapability>;
  readonly strideRetries: ReadonlySet<ServerCapability>;
}

/** Only this class changes the facts about the server of an open source: in Postgres, and in `facts`. */
export class LearnedServer {
  readonly #db: Database;
  readonly #sourceId: number;
  readonly #meters: Map<Meter, number>;
  readonly #capabilities = new Set<ServerCapability>();
  readonly #strideRetries = new Set<ServerCapability>();
  readonly facts: ServerFacts;

  private constructor(db: Database, sourceId: number, meters: Map<Meter, number>) {
    this.#db = db;
    this.#sourceId = sourceId;
    this.#meters = meters;
    this.facts = { meters, capabilities: this.#capabilities, strideRetries: this.#strideRetries };
  }

  static async read(db: Database, sourceId: number): Promise<LearnedServer> {
    const server = new LearnedServer(db, sourceId, await meterStartsOf(db, sourceId));
    for (const { capability, retryDue } of await capabilitiesOf(db, sourceId)) {
      server.#capabilities.add(capability);
      if (retryDue) server.#strideRetries.add(capability);
    }
    return server;
  }

  async lacks(capability: ServerCapability, evidence: string): Promise<void> {
    this.#capabilities.add(capability);
    await learnCapability(this.#db, { sourceId: this.#sourceId, capability, evidence });
  }

  async respondsIn(stride: Stride): Promise<void> {
    const capability = `no_${stride}` as const;
    if (!this.#capabilities.delete(capability)) return;
    await forgetCapability(this.#db, { sourceId: this.#sourceId, capability });
  }

  /** True if the server does not support the stride, so that it is not requested. One request a day is let through. */
  refuses(stride: Stride): boolean {
    const capability = `no_${stride}` as const;
    const isRetry = this.#strideRetries.delete(capability);
    return this.#capabilities.has(capability) && !isRetry;
  }

  /** Records that the server may no longer count this meter. The next sync tests it. */
  async mayCountNoMore(meter: LearnableMeter, evidence: string): Promise<void> {
    this.#meters.delete(meter);
    await learnMeter(this.#db, { sourceId: this.#sourceId, meter, state: "not_known", evidence });
  }

  takeOver(learned: readonly LearnedMeter[], dataStart: number): void {
    for (const { meter, state, startsOn } of learned) {
      if (state !== "counted") this.#meters.delete(meter);
      else this.#meters.set(meter, startsOn === null ? dataStart : Date.parse(startsOn));
    }
  }
}
