import { Access } from "./access.ts";
import { Bill } from "./bill.ts";
import type { Deviation } from "./deviation.ts";
import { EvaluatorLedger } from "./evaluators.ts";
import { type FaultOptions, Faults } from "./faults.ts";
import { Invoices } from "./invoice.ts";
import { type Cell, DeploymentLedger, type DeploymentMeasure, Ledger, type TraceTier } from "./ledger.ts";
import { findStream, type Organisation, type Stream } from "./organisation.ts";
import { SandboxLedger } from "./sandboxes.ts";
import { seedOrganisation } from "./seeding.ts";
import type { Settings } from "./settings.ts";
import { Statement } from "./statement.ts";
import type { StrideName } from "./stride.ts";
import { Tags } from "./tags.ts";

export interface WorldOptions {
  readonly seed: number;
  readonly scale: number;
  /** Start of a UTC day. */
  readonly dataStart: number;
  readonly deploymentStart: number;
  readonly apiKey: string;
  /** True: a request about one workspace has `X-Tenant-Id`. */
  readonly organizationScoped: boolean;
  readonly now: () => number;
  readonly settings: Settings;
  readonly faults: FaultOptions;
  readonly deviations: readonly Deviation[];
}

export type Format = "json" | "csv";

/** Responses in one stride count one row of the ledger differently. */
export interface Discrepancy {
  /** Undefined: in both formats. */
  readonly format?: Format | undefined;
  readonly stride: StrideName;
  /** Undefined: in all. */
  readonly groupBy?: string | undefined;
  /** Undefined: in responses about all tiers. */
  readonly tier?: TraceTier | null | undefined;
  /** Default `traces`. */
  readonly measure?: "traces" | DeploymentMeasure | undefined;
  readonly cell: Cell;
  readonly delta: number;
}

interface SeenRequest {
  readonly method: string;
  readonly url: string;
  /** Null: reset or left open. */
  readonly status: number | null;
  readonly fault: string | null;
}

const REMEMBERED = 1000;

export class World {
  readonly settings: Settings;
  readonly discrepancies: Discrepancy[] = [];
  readonly deviations: readonly Deviation[];
  readonly seed: number;
  readonly organisation: Organisation;
  readonly ledger: Ledger;
  readonly deploymentLedger: DeploymentLedger;
  readonly sandboxLedger: SandboxLedger;
  readonly evaluatorLedger: EvaluatorLedger;
  readonly tags: Tags;
  readonly access: Access;
  readonly bill: Bill;
  readonly invoices: Invoices;
  readonly statement: Statement;
  readonly faults: Faults;
  readonly requests: { count: number; readonly recent: SeenRequest[] } = { count: 0, recent: [] };
  readonly #source: () => number;
  #frozenAt: number | null = null;
  #ahead = 0;

  constructor(options: WorldOptions) {
    const { seed, scale, dataStart, deploymentStart, settings } = options;
    this.settings = { ...settings };
    this.deviations = options.deviations;
    this.seed = seed;
    this.#source = options.now;
    const organisation = seedOrganisation({ seed, scale });
    const now = () => this.now();
    const traced = { seed, organisation, start: dataStart, now };
    const deployed = { seed, organisation, start: deploymentStart, now };
    this.organisation = organisation;
    this.ledger = new Ledger(traced);
    this.deploymentLedger = new DeploymentLedger(deployed);
    this.sandboxLedger = new SandboxLedger(deployed);
    this.evaluatorLedger = new EvaluatorLedger(traced);
    this.tags = new Tags({ seed, organisation });
    this.access = new Access({ ...options, organisation });
    const { ledger, deploymentLedger, sandboxLedger } = this;
    this.bill = new Bill({ organisation, ledger, deploymentLedger, now });
    this.invoices = new Invoices({ organisation, ledger, sandboxLedger });
    this.statement = new Statement(organisation);
    this.faults = new Faults(options.faults);
  }

  get apiKey(): string {
    return this.access.apiKey;
  }

  /** All rules about time use this clock. */
  now(): number {
    return (this.#frozenAt ?? this.#source()) + this.#ahead;
  }

  /** `advance`: ms. `frozenAt` null: the clock runs again. */
  setClock(to: { frozenAt: number | null } | { advance: number }): void {
    this.#ahead = "advance" in to ? this.#ahead + to.advance : 0;
    if ("frozenAt" in to) this.#frozenAt = to.frozenAt;
  }

  discrepanciesIn(
    { stride, groupBy, format, tier, measure }: Required<Omit<Discrepancy, "cell" | "delta">>,
    stream: Stream,
  ): Discrepancy[] {
    const { streams, deploymentStreams } = this.organisation;
    const known = measure === "traces" ? streams : deploymentStreams;
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
