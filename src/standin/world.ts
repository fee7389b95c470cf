import { Access } from "./engine/access.ts";
import { type Cell, Ledger } from "./engine/ledger.ts";
import { findStream, type Organisation, type Stream } from "./engine/organisation.ts";
import { seedOrganisation } from "./engine/seeding.ts";
import { type FaultOptions, Faults, type Framing, type StrideName } from "./faults.ts";

/** How the server answers; each can be changed while it runs. */
export interface Settings {
  /** Which of the two contracts in the field is spoken (docs/platform.md, Contracts). */
  contract: "tiered" | "day-granular";
  /** Where 7-, 30- and 365-day buckets start. */
  align: "window" | "epoch";
  /** False: /workspaces, /orgs/current and /info answer 404. */
  listing: boolean;
  /** True: an end_time in the future is answered with 422. */
  refuseFuture: boolean;
  /** Buckets without usage are left out, or (false) sent as 0. */
  omitZero: boolean;
  /** Answers are compressed with gzip if the client accepts it. */
  compress: boolean;
  /** How the end of a body is marked. The CSV export streams, so `length` sends it in chunks. */
  framing: Framing;
  csvNewline: "crlf" | "lf";
  /** Of the deployment's configuration file: true removes `/a2a` and the agent cards. */
  http: { disable_a2a: boolean };
}

export interface WorldOptions {
  readonly seed: number;
  readonly scale: number;
  /** Epoch ms, start of a UTC day. */
  readonly dataStart: number;
  readonly apiKey: string;
  readonly now: () => number;
  readonly settings: Settings;
  readonly faults: FaultOptions;
}

/** Makes the platform contradict itself: answers in one stride count a cell of the ledger differently. */
export interface Discrepancy {
  readonly stride: StrideName;
  /** Undefined: in every dimension. */
  readonly groupBy?: string | undefined;
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

/** What all routes share: one organisation, one ledger, one clock, one key. */
export class World {
  readonly settings: Settings;
  readonly discrepancies: Discrepancy[] = [];
  readonly #options: WorldOptions;
  #state: { seed: number; organisation: Organisation; ledger: Ledger; access: Access; faults: Faults };
  #clock: { frozenAt: number | null; ahead: number } = { frozenAt: null, ahead: 0 };
  #requests = { count: 0, recent: [] as SeenRequest[] };
  #parts = new Map<() => PartState, PartState>();

  constructor(options: WorldOptions) {
    this.#options = options;
    this.settings = structuredClone(options.settings);
    this.#state = this.#fresh(options.seed);
  }

  get seed(): number {
    return this.#state.seed;
  }
  get organisation(): Organisation {
    return this.#state.organisation;
  }
  get ledger(): Ledger {
    return this.#state.ledger;
  }
  get access(): Access {
    return this.#state.access;
  }
  get faults(): Faults {
    return this.#state.faults;
  }
  /** The last requests, oldest first, and how many there were in all. */
  get requests(): { readonly count: number; readonly recent: readonly SeenRequest[] } {
    return { ...this.#requests };
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
  close(): void {
    for (const part of this.#parts.values()) part.close?.();
    this.#parts.clear();
  }

  /** As if just started, with another seed if one is given. */
  reset(seed = this.seed): void {
    this.close();
    this.#state = this.#fresh(seed);
    Object.assign(this.settings, structuredClone(this.#options.settings));
    this.#clock = { frozenAt: null, ahead: 0 };
    this.#requests = { count: 0, recent: [] };
    this.discrepancies.length = 0;
  }

  discrepanciesIn(stride: StrideName, groupBy: string, stream: Stream): Discrepancy[] {
    return this.discrepancies.filter(
      (one) =>
        one.stride === stride &&
        (one.groupBy === undefined || one.groupBy === groupBy) &&
        findStream(this.organisation, one.cell) === stream,
    );
  }

  remember(seen: SeenRequest): void {
    this.#requests.count++;
    this.#requests.recent.push(seen);
    if (this.#requests.recent.length > REMEMBERED) this.#requests.recent.shift();
  }

  #fresh(seed: number) {
    const { scale, dataStart, apiKey, faults } = this.#options;
    const organisation = seedOrganisation({ seed, scale });
    const ledger = new Ledger({ seed, organisation, dataStart, now: () => this.now() });
    const access = new Access(apiKey, organisation);
    return { seed, organisation, ledger, access, faults: new Faults(faults) };
  }
}
