import { Access } from "./engine/access.ts";
import { type Cell, Ledger } from "./engine/ledger.ts";
import { findStream, type Organisation, type Stream } from "./engine/organisation.ts";
import { seedOrganisation } from "./engine/seeding.ts";
import { type FaultOptions, Faults, type Framing, type StrideName } from "./faults.ts";

/** How the server answers; each can be changed while it runs. */
export interface Settings {
  contract: "tiered" | "day-granular";
  align: "window" | "epoch";
  listing: boolean;
  refuseFuture: boolean;
  omitZero: boolean;
  compress: boolean;
  framing: Framing;
  csvNewline: "crlf" | "lf";
  /** Of the deployment's configuration file: see the specification, "Disabling the A2A endpoint". */
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

/** A platform that contradicts itself: answers in one stride count a cell of the ledger otherwise than all others. */
export interface Discrepancy {
  readonly stride: StrideName;
  /** Without it, in every grouping. */
  readonly groupBy?: string | undefined;
  readonly cell: Cell;
  readonly delta: number;
}

/** One request to the platform's routes, as the inspection shows it. */
export interface Seen {
  readonly method: string;
  readonly url: string;
  /** Null where the connection was reset or left hanging. */
  readonly status: number | null;
  readonly fault: string | null;
}

/** What a room keeps of its own. */
export interface RoomState {
  /** Ends what is under way in it: it is about to be forgotten. */
  close(): void;
  /** For the inspection. */
  inspect(): object;
}

const REMEMBERED = 1000;

/** Everything the rooms share: one organisation, one ledger, one clock, one key. */
export class World {
  readonly settings: Settings;
  readonly discrepancies: Discrepancy[] = [];
  readonly #options: WorldOptions;
  #state: { seed: number; organisation: Organisation; ledger: Ledger; access: Access; faults: Faults };
  #clock: { frozenAt: number | null; ahead: number } = { frozenAt: null, ahead: 0 };
  #seen: Seen[] = [];
  #count = 0;
  #rooms = new Map<() => RoomState, RoomState>();

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
  get requests(): { count: number; recent: readonly Seen[] } {
    return { count: this.#count, recent: this.#seen };
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

  /** The state of one room: made when it is first asked for, and anew after a reset. */
  keep<T extends RoomState>(make: () => T): () => T {
    return () => {
      const kept = (this.#rooms.get(make) as T | undefined) ?? make();
      this.#rooms.set(make, kept);
      return kept;
    };
  }

  /** What the rooms keep, by name of the part. */
  inspectRooms(): object {
    return Object.assign({}, ...[...this.#rooms.values()].map((room) => room.inspect()));
  }

  /** Ends whatever the rooms have under way. */
  close(): void {
    for (const room of this.#rooms.values()) room.close();
    this.#rooms.clear();
  }

  /** As if just started, with another seed if one is given. */
  reset(seed = this.seed): void {
    this.close();
    this.#state = this.#fresh(seed);
    Object.assign(this.settings, structuredClone(this.#options.settings));
    this.#clock = { frozenAt: null, ahead: 0 };
    this.#seen = [];
    this.#count = 0;
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

  remember(seen: Seen): void {
    this.#count++;
    this.#seen.push(seen);
    if (this.#seen.length > REMEMBERED) this.#seen.shift();
  }

  #fresh(seed: number) {
    const { scale, dataStart, apiKey, faults } = this.#options;
    const organisation = seedOrganisation({ seed, scale });
    const ledger = new Ledger({ seed, organisation, dataStart, now: () => this.now() });
    return {
      seed,
      organisation,
      ledger,
      access: new Access(apiKey, organisation),
      faults: new Faults(faults),
    };
  }
}
