import type { Asked } from "./deviation.ts";
import { dice } from "./random.ts";
import { instantOf, type StrideName, strideOf } from "./stride.ts";

export type Fault =
  | {
      readonly kind: "status";
      readonly status: number;
      /** Seconds or an HTTP date. */
      readonly retry_after?: string | number | undefined;
      /** With status 200, a body that is not one of the platform. */
      readonly body?: string | undefined;
      readonly content_type?: string | undefined;
    }
  | { readonly kind: "reset" | "hang" }
  /**
   * Cuts the body. `framing`: `length` (Content-Length is larger), `chunked` (no last chunk), `close` (no length), `gzip` (no
   * gzip trailer; only for clients that accept gzip). `at`: after half of the bytes, after the last line of the first half, or
   * after all bytes but before the end mark.
   */
  | {
      readonly kind: "cut";
      readonly framing: "length" | "chunked" | "close" | "gzip";
      /** Default `half`. */
      readonly at?: "half" | "line" | "all";
    }
  | { readonly kind: "slow"; readonly ms: number }
  /** Sends the whole body in this framing. */
  | { readonly kind: "whole"; readonly framing: "chunked" | "close" }
  /** Right counts, in the next coarser stride. */
  | { readonly kind: "stride" }
  /** A response of status 200 with a changed body. */
  | { readonly kind: "body"; readonly change: (body: string, query: Asked["query"]) => string };

/** Happens to the traces of runs. */
export type MeterFault =
  | { readonly kind: "drop" }
  /** Billed again after this time. */
  | { readonly kind: "double"; readonly after_seconds: number }
  /** Billed after this time, in the hour of sending. */
  | { readonly kind: "late"; readonly seconds: number }
  /** Billed to another project, user or key of the workspace. */
  | { readonly kind: "project" | "user" | "key" };

interface Step<F> {
  readonly fault: F;
  /** Default 1. */
  readonly times?: number;
  readonly skip?: number;
}

/** Applies to `times` matching requests after the first `skip`. All given conditions must match. */
export interface FaultStep extends Step<Fault> {
  readonly match?: {
    /** Part of the path. */
    readonly path?: string;
    /** Each parameter has this value, perhaps among others. */
    readonly query?: Readonly<Record<string, string>>;
    /** The requested time overlaps. */
    readonly during?: { readonly from: string; readonly to: string };
    /** Stride of the response. */
    readonly stride?: StrideName;
  };
}

const NAMED = {
  "429": { kind: "status", status: 429 },
  "429-retry-after": { kind: "status", status: 429, retry_after: 1 },
  "500": { kind: "status", status: 500 },
  "502": { kind: "status", status: 502 },
  "503": { kind: "status", status: 503 },
  reset: { kind: "reset" },
  hang: { kind: "hang" },
  "cut-length": { kind: "cut", framing: "length", at: "half" },
  "cut-chunked": { kind: "cut", framing: "chunked", at: "all" },
  "cut-close": { kind: "cut", framing: "close", at: "half" },
  "cut-gzip": { kind: "cut", framing: "gzip", at: "half" },
  slow: { kind: "slow", ms: 1000 },
} as const satisfies Record<string, Fault>;
export type FaultName = keyof typeof NAMED;
export const faultNames = Object.keys(NAMED) as FaultName[];

export interface FaultOptions {
  readonly seed?: number | undefined;
  /** Probability per request. A request has one fault at most. */
  readonly rates?: Readonly<Partial<Record<FaultName, number>>> | undefined;
  /** The first step that matches a request applies. */
  readonly script?: readonly FaultStep[] | undefined;
  readonly metering?: readonly Step<MeterFault>[] | undefined;
}

export interface FaultyRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly acceptsGzip: boolean;
}

export class Faults {
  fired = 0;
  #rates: NonNullable<FaultOptions["rates"]> = {};
  #script: Left<FaultStep>[] = [];
  #metering: Left<Step<MeterFault>>[] = [];
  #roll = dice(1);

  constructor(options: FaultOptions = {}) {
    this.set(options);
  }

  set({ script = [], metering = [], rates, seed }: FaultOptions): void {
    this.#script.push(...script.map(leftOf));
    this.#metering.push(...metering.map(leftOf));
    if (rates !== undefined) this.#rates = rates;
    if (seed !== undefined) this.#roll = dice(seed);
  }

  script(...steps: FaultStep[]): void {
    this.set({ script: steps });
  }

  clear(): void {
    this.#rates = {};
    this.#script = [];
    this.#metering = [];
  }

  /** Counts the request, so call this once for each. */
  next(request: FaultyRequest): Fault | null {
    const fault = take(this.#script, (step) => matches(step, request)) ?? this.#rolled(request);
    if (fault !== null) this.fired++;
    return fault;
  }

  nextOfMeter(): MeterFault | null {
    const fault = take(this.#metering, () => true);
    if (fault !== null) this.fired++;
    return fault;
  }

  #rolled(request: FaultyRequest): Fault | null {
    const rated = faultNames.filter((name) => this.#rates[name] !== undefined);
    if (rated.length === 0) return null;
    let left = this.#roll.next();
    for (const name of rated) {
      left -= this.#rates[name] ?? 0;
      if (left < 0) return applies(NAMED[name], request) ? NAMED[name] : null;
    }
    return null;
  }
}

type Left<S> = S & { times: number; skip: number };

function leftOf<S extends Step<unknown>>(step: S): Left<S> {
  return { times: 1, skip: 0, ...step };
}

function take<S extends Step<unknown>>(steps: Left<S>[], matches: (step: S) => boolean): S["fault"] | null {
  for (const step of steps) {
    if (!matches(step)) continue;
    if (step.skip > 0) {
      step.skip--;
      continue;
    }
    step.times--;
    if (step.times === 0) steps.splice(steps.indexOf(step), 1);
    return step.fault;
  }
  return null;
}

function matches({ match = {}, fault }: FaultStep, request: FaultyRequest): boolean {
  if (!applies(fault, request)) return false;
  if (match.path !== undefined && !request.path.includes(match.path)) return false;
  if (!matchesTime(match, request)) return false;
  return Object.entries(match.query ?? {}).every(([name, value]) =>
    [request.query[name]].flat().some((given) => given === value),
  );
}

function matchesTime({ during, stride }: NonNullable<FaultStep["match"]>, { query }: FaultyRequest): boolean {
  const at = (time: unknown) => instantOf(String(time)) ?? Number.NaN;
  const range = { start: at(query.start_time), end: at(query.end_time) };
  if (during !== undefined) {
    const overlaps = range.start < Date.parse(during.to) && range.end > Date.parse(during.from);
    if (!overlaps) return false;
  }
  return stride === undefined || strideOf(range) === stride;
}

/** A gzip body is cut only for a client that accepts gzip. */
function applies(fault: Fault, { acceptsGzip }: FaultyRequest): boolean {
  return !(fault.kind === "cut" && fault.framing === "gzip") || acceptsGzip;
}
