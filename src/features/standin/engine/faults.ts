import { z } from "zod";
import { EVALUATOR_SPEND } from "./evaluators.ts";
import { dice } from "./random.ts";
import { SANDBOX_COSTS } from "./sandboxes.ts";
import { instantOf, strideNames, strideOf } from "./stride.ts";
import { TAGGINGS } from "./tags.ts";

/** A script applies to the next matching requests. Rates apply at random, from a seed. */
const faultSchema = z.discriminatedUnion("kind", [
  /** `retry_after`: seconds or an HTTP date. With status 200, the body is not one of the platform. */
  z.strictObject({
    kind: z.literal("status"),
    status: z.int().min(200).max(599),
    retry_after: z.union([z.string(), z.number()]).optional(),
    body: z.string().optional(),
    content_type: z.string().optional(),
  }),
  z.strictObject({ kind: z.literal("reset") }),
  z.strictObject({ kind: z.literal("hang") }),
  /**
   * Cuts the body. `framing`: `length` (Content-Length is larger), `chunked` (no last chunk), `close` (no length), `gzip` (no
   * gzip trailer; only for clients that accept gzip). `at`: after half of the bytes, after the last line of the first half, or
   * after all bytes but before the end mark.
   */
  z.strictObject({
    kind: z.literal("cut"),
    framing: z.enum(["length", "chunked", "close", "gzip"]),
    at: z.enum(["half", "line", "all"]).default("half"),
  }),
  z.strictObject({ kind: z.literal("slow"), ms: z.number().min(0).max(600_000) }),
  /** Sends the whole body in this framing. */
  z.strictObject({ kind: z.literal("whole"), framing: z.enum(["chunked", "close"]) }),
  /** Right counts, in the next coarser stride. */
  z.strictObject({ kind: z.literal("stride") }),
  /** The uptime of deployments is missing or impossible. */
  z.strictObject({ kind: z.literal("measure"), wrong: z.enum(["missing", "negative", "fractional"]) }),
  /**
   * Sandbox costs. `empty-page`: a cursor without items, as the platform may send. `repeated-page`: the same items again.
   * `endless`: the same page and cursor each time. `cursor-expired`: a cursor is refused. `no-cursor`: `next_cursor` is
   * missing, even if pages follow. Other faults change the first item: `lcu` is null, negative or has 30 decimals, or
   * `period_start` is 17 minutes late. `standard`: its standard units are negative and a number.
   */
  z.strictObject({
    kind: z.literal("sandbox"),
    wrong: z.enum([
      "empty-page",
      "repeated-page",
      "endless",
      "cursor-expired",
      "no-cursor",
      "null",
      "negative",
      "many-digits",
      "off-hour",
      "standard",
    ]),
  }),
  /**
   * Evaluator spend. The first day has negative spend or a text, or a date before the period or twice. Or the first group is
   * there twice or lacks the id of its rule. `foreign`: an object without any of the fields.
   */
  z.strictObject({
    kind: z.literal("evaluators"),
    wrong: z.enum([
      "negative",
      "not-a-number",
      "other-day",
      "day-twice",
      "group-twice",
      "no-rule",
      "foreign",
    ]),
  }),
  /** The first value has no key name, or has a project that no workspace has. */
  z.strictObject({ kind: z.literal("tags"), wrong: z.enum(["no-key", "unknown-resource"]) }),
]);
export type Fault = z.output<typeof faultSchema>;

const meterFaultSchema = z.discriminatedUnion("kind", [
  z.strictObject({ kind: z.literal("drop") }),
  /** Billed again after this time. */
  z.strictObject({ kind: z.literal("double"), after_seconds: z.number().min(0).default(0) }),
  /** Billed after this time, in the hour of sending. */
  z.strictObject({ kind: z.literal("late"), seconds: z.number().min(0) }),
  /** Billed to another project, user or key of the workspace. */
  z.strictObject({ kind: z.enum(["project", "user", "key"]) }),
]);
export type MeterFault = z.output<typeof meterFaultSchema>;

const meterStepSchema = z.strictObject({
  fault: meterFaultSchema,
  times: z.int().min(1).default(1),
  skip: z.int().min(0).default(0),
});

const instant = z.iso.datetime({ offset: true });

const stepSchema = z.strictObject({
  fault: faultSchema,
  times: z.int().min(1).default(1),
  skip: z.int().min(0).default(0),
  /**
   * `path`: part of the path. `query`: each parameter has this value, perhaps among others. `during`: the requested time
   * overlaps. `stride`: that of the response.
   */
  match: z
    .strictObject({
      path: z.string().optional(),
      query: z.record(z.string(), z.string()).optional(),
      during: z.strictObject({ from: instant, to: instant }).optional(),
      stride: z.enum(strideNames).optional(),
    })
    .default({}),
});
export type FaultStep = z.input<typeof stepSchema>;

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

/** A request has one fault at most. */
const ratesSchema = z
  .partialRecord(z.enum(faultNames), z.number().min(0).max(1))
  .refine(
    (rates) => Object.values(rates).reduce((sum, rate) => sum + rate, 0) <= 1,
    "rates add up to more than 1",
  );

export const faultOptionsSchema = z.strictObject({
  seed: z.int().optional(),
  rates: ratesSchema.optional(),
  script: z.array(stepSchema).optional(),
  metering: z.array(meterStepSchema).optional(),
});
export type FaultOptions = z.input<typeof faultOptionsSchema>;

export interface FaultyRequest {
  readonly path: string;
  readonly query: Readonly<Record<string, unknown>>;
  readonly acceptsGzip: boolean;
}

export class Faults {
  fired = 0;
  #rates: z.output<typeof ratesSchema> = {};
  #script: z.output<typeof stepSchema>[] = [];
  #metering: z.output<typeof meterStepSchema>[] = [];
  #roll = dice(1);

  constructor(options: FaultOptions = {}) {
    this.set(options);
  }

  set(options: FaultOptions): void {
    const { script = [], metering = [], rates, seed } = faultOptionsSchema.parse(options);
    this.#script.push(...script);
    this.#metering.push(...metering);
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

function take<F, S extends { fault: F; times: number; skip: number }>(
  steps: S[],
  matches: (step: S) => boolean,
): S["fault"] | null {
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

function matches({ match, fault }: z.output<typeof stepSchema>, request: FaultyRequest): boolean {
  if (!applies(fault, request)) return false;
  if (match.path !== undefined && !request.path.includes(match.path)) return false;
  if (!matchesTime(match, request)) return false;
  return Object.entries(match.query ?? {}).every(([name, value]) =>
    [request.query[name]].flat().some((given) => given === value),
  );
}

function matchesTime(
  { during, stride }: z.output<typeof stepSchema>["match"],
  { query }: FaultyRequest,
): boolean {
  const at = (time: unknown) => instantOf(String(time)) ?? Number.NaN;
  const range = { start: at(query.start_time), end: at(query.end_time) };
  if (during !== undefined) {
    const overlaps = range.start < Date.parse(during.to) && range.end > Date.parse(during.from);
    if (!overlaps) return false;
  }
  return stride === undefined || strideOf(range) === stride;
}

/** A gzip body is cut only for a client that accepts gzip. Other faults need a response with the part that they change. */
function applies(fault: Fault, { path, query, acceptsGzip }: FaultyRequest): boolean {
  if (fault.kind === "sandbox") {
    // Only a cursor that the request has can be refused.
    const isMet = fault.wrong !== "cursor-expired" || query.cursor !== undefined;
    return path === SANDBOX_COSTS && isMet;
  }
  if (fault.kind === "evaluators") {
    const hasRules = query.group_by === undefined || query.group_by === "run_rule";
    return EVALUATOR_SPEND.includes(path) && (hasRules || fault.wrong !== "no-rule");
  }
  if (fault.kind === "tags") return path === TAGGINGS;
  if (fault.kind === "measure") return query.kind === "langsmith_deployments";
  return !(fault.kind === "cut" && fault.framing === "gzip") || acceptsGzip;
}
