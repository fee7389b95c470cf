import type { StrideName } from "./billing/stride.ts";
import { Access } from "./engine/access.ts";
import { Bill } from "./engine/bill.ts";
import { EvaluatorLedger } from "./engine/evaluators.ts";
import {
  type Cell,
  DeploymentLedger,
  type DeploymentMeasure,
  Ledger,
  type TraceTier,
} from "./engine/ledger.ts";
import { findStream, type Organisation, type Stream } from "./engine/organisation.ts";
import { SandboxLedger } from "./engine/sandboxes.ts";
import { seedOrganisation } from "./engine/seeding.ts";
import { Tags } from "./engine/tags.ts";
import { type FaultOptions, Faults } from "./faults.ts";
import type { Settings } from "./settings.ts";

export interface WorldOptions {
  /** Of the organisation and its history. */
  readonly seed: number;
  /** Multiplies projects, users and keys. */
  readonly scale: number;
  /** Epoch ms, start of a UTC day. */
  readonly dataStart: number;
  /** The same for usage of deployments and of sandboxes. */
  readonly deploymentStart: number;
  readonly apiKey: string;
  /** A key of the organization: requests about one workspace name it in `X-Tenant-Id`. */
  readonly organizationScoped: boolean;
  /** Epoch ms. */
  readonly now: () => number;
  readonly settings: Settings;
  readonly faults: FaultOptions;
}

export type Format = "json" | "csv";

/** Makes the platform contradict itself: answers in one stride count a cell of the ledger differently. */
export interface Discrepancy {
  /** Undefined: in JSON and in the export. */
  readonly format?: Format | undefined;
  readonly stride: StrideName;
  /** Undefined: in every dimension. */
  readonly groupBy?: string | undefined;
  /** Null: in answers about all tiers. */
  readonly tier?: TraceTier | null | undefined;
  /** Default `traces`; the others are of deployments. */
  readonly measure?: "traces" | DeploymentMeasure | undefined;
  readonly cell: Cell;
  readonly delta: number;
}

/** One request to the platform's routes. */
interface SeenRequest {
  readonly method: string;
  readonly url: string;
  /** Null if the connection was reset or left hanging. */
  readonly status: number | null;
  readonly fault: string | null;
}

/** State that a part of the platform keeps for itself, such as threads or templates. */
export interface PartState {
  /** Ends running work: the state is about to be forgotten. */
  close?(): void;
  /** For the admin routes. */
  inspect(): object;
}

const REMEMBERED = 1000;

/** What all routes share: one organisation, one ledger, one clock, one key. A reset replaces all but the settings object. */
export class World {
  readonly settings: Settings;
  readonly discrepancies: Discrepancy[] = [];
  seed!: number;
  organisation!: Organisation;
  ledger!: Ledger;
  deploymentLedger!: DeploymentLedger;
  sandboxLedger!: SandboxLedger;
  evaluatorLedger!: EvaluatorLedger;
  tags!: Tags;
  access!: Access;
  bill!: Bill;
  faults!: Faults;
  /** The last requests, oldest first, and how many there were in all. */
  requests!: { count: number; readonly recent: SeenRequest[] };
  readonly #options: WorldOptions;
  #clock!: { frozenAt: number | null; ahead: number };
  #parts = new Map<() => PartState, PartState>();

  constructor(options: WorldOptions) {
    this.#options = options;
    this.settings = { ...options.settings };
    this.reset(options.seed);
  }

  get apiKey(): string {
    return this.access.apiKey;
  }

  /** Epoch ms. Every rule about time reads this clock. */
  now(): number {
    return (this.#clock.frozenAt ?? this.#options.now()) + this.#clock.ahead;
  }

  /** Freezes the clock at an instant, moves it by `ahead` ms, or (null) lets it run from its source again. */
  setClock(to: { frozenAt: number | null } | { advance: number }): void {
    if ("advance" in to) this.#clock = { ...this.#clock, ahead: this.#clock.ahead + to.advance };
    else this.#clock = { frozenAt: to.frozenAt, ahead: 0 };
  }

  /** Returns what reads the state of one part: made at first use, and again after a reset. */
  keep<T extends PartState>(make: () => T): () => T {
    return () => {
      const kept = (this.#parts.get(make) as T | undefined) ?? make();
      this.#parts.set(make, kept);
      return kept;
    };
  }

  /** The state of all parts that were used. */
  inspectParts(): object {
    return Object.assign({}, ...[...this.#parts.values()].map((part) => part.inspect()));
  }

  /** Ends all running work. */
  end(): void {
    for (const part of this.#parts.values()) part.close?.();
    this.#parts.clear();
  }

  /** As if just started, with another seed if one is given. */
  reset(seed = this.seed): void {
    const { scale, dataStart, deploymentStart, apiKey, organizationScoped, faults, settings } = this.#options;
    this.end();
    this.seed = seed;
    this.organisation = seedOrganisation({ seed, scale });
    const { organisation } = this;
    const now = () => this.now();
    this.ledger = new Ledger({ seed, organisation, start: dataStart, now });
    const deployed = { streams: organisation.deploymentStreams };
    this.deploymentLedger = new DeploymentLedger({
      seed,
      organisation: deployed,
      start: deploymentStart,
      now,
    });
    this.sandboxLedger = new SandboxLedger({ seed, organisation, start: deploymentStart, now });
    this.evaluatorLedger = new EvaluatorLedger({ seed, organisation, start: dataStart, now });
    this.tags = new Tags({ seed, organisation });
    this.access = new Access(apiKey, organisation);
    this.access.organizationScoped = organizationScoped;
    this.bill = new Bill({ organisation, ledger: this.ledger, now: () => this.now() });
    this.faults = new Faults(faults);
    this.requests = { count: 0, recent: [] };
    this.#clock = { frozenAt: null, ahead: 0 };
    this.discrepancies.length = 0;
    Object.assign(this.settings, structuredClone(settings));
  }

  discrepanciesIn(
    { stride, groupBy, format, tier, measure }: Required<Omit<Discrepancy, "cell" | "delta">>,
    stream: Stream,
  ): Discrepancy[] {
    const { streams, deploymentStreams } = this.organisation;
    const known = { streams: measure === "traces" ? streams : deploymentStreams };
    return this.discrepancies.filter(
      (one) =>
        one.stride === stride &&
        (one.format === undefined || one.format === format) &&
        (one.groupBy === undefined || one.groupBy === groupBy) &&
        (one.tier ?? null) === tier &&
        (one.measure ?? "traces") === measure &&
        findStream(known, one.cell) === stream,
    );
  }

  remember(seen: SeenRequest): void {
    const { requests } = this;
    requests.count++;
    requests.recent.push(seen);
    if (requests.recent.length > REMEMBERED) requests.recent.shift();
  }
}
