import { readFileSync } from "node:fs";
import { Readable } from "node:stream";
import { inspect } from "node:util";
import fc from "fast-check";
import { expect } from "vitest";
import { systemClock } from "../../../src/core/base/clock.ts";
import { EtlError } from "../../../src/core/base/errors.ts";
import { Deadline, ResponseBody } from "../../../src/core/platform/http/body.ts";
import type { PlatformResponse } from "../../../src/core/platform/http/http.ts";
import { createRedactor } from "../../../src/core/platform/http/redact.ts";
import { seed, times } from "../../support/drawn.ts";

export const SEED = seed();
export const KEY = "lsv2_sk_4f3e2d1c0b9a";

export async function holds<T>(
  edge: keyof typeof CORPUS,
  drawn: fc.Arbitrary<T>,
  runs: number,
  check: (input: T) => unknown,
): Promise<void> {
  const property = fc.asyncProperty(drawn, async (input) => void (await check(input)));
  for (const found of CORPUS[edge]) await check(found.input as T);
  await fc.assert(property, often(runs));
}

/** So many runs, or more, from the seed. */
export const often = (runs: number) => ({ seed: SEED, numRuns: times(runs) });

interface Found {
  readonly about: string;
  readonly input: unknown;
}

const CORPUS: Readonly<
  Record<"json" | "document" | "csv" | "events" | "http" | "configuration" | "command", readonly Found[]>
> = JSON.parse(readFileSync(new URL("corpus.json", import.meta.url), "utf8"));

function codeOf(error: unknown): string {
  const said = error instanceof Error ? `${error.message} ${(error as { next?: string }).next}` : "";
  if (!(error instanceof EtlError)) throw new Error(`not an error of ours: ${inspect(error)}`);
  expect(said).not.toContain(KEY);
  expect(`${inspect(error, { depth: 6 })}${error.stack}`).not.toContain(KEY);
  expect(error.code).toMatch(/^[a-z_]+$/);
  expect(error.next).not.toBe("");
  return error.code;
}

export async function outcomeOf<T>(call: () => Promise<T> | T): Promise<{ value: T } | { code: string }> {
  try {
    return { value: await call() };
  } catch (error) {
    return { code: codeOf(error) };
  }
}

const CONTEXT = {
  method: "GET",
  url: "http://h/",
  redact: createRedactor(KEY),
  variable: "USAGE_BASE_URL",
} as const;

export function responseOf(bytes: Buffer, pieceLength: number, isEndProved = true): PlatformResponse {
  const pieces: Buffer[] = [];
  for (let at = 0; at < bytes.length; at += pieceLength) pieces.push(bytes.subarray(at, at + pieceLength));
  const body = new ResponseBody({
    stream: Readable.from(pieces, { objectMode: true }),
    status: 200,
    headers: isEndProved ? { "content-length": String(bytes.length) } : {},
    context: CONTEXT,
    signal: undefined,
    deadline: new Deadline(systemClock, undefined),
    now: () => 0,
    graceMs: Number.POSITIVE_INFINITY,
    limit: 1_000_000,
  });
  return { body, context: CONTEXT };
}

type Change = readonly [kind: "flip" | "insert" | "delete" | "double" | "cut", at: number, what: number];

const change: fc.Arbitrary<Change> = fc.tuple(
  fc.constantFrom("flip", "insert", "delete", "double", "cut"),
  fc.nat(1_000_000),
  fc.nat(255),
);

/** A text, and how it is damaged on the way: mostly little, so that most of it is still read. */
export const damaged = (text: fc.Arbitrary<string>) =>
  fc.record({
    text,
    changes: fc.oneof(fc.constant([]), fc.array(change, { minLength: 1, maxLength: 3 })),
    pieceLength: fc.integer({ min: 1, max: 200 }),
  });
export interface Damaged {
  readonly text: string;
  readonly changes: readonly Change[];
  readonly pieceLength: number;
}

/** Characters that mean something in the grammars, so that a change is not only noise. */
const TELLING = Buffer.from('"\\{}[],:0-9.eE \n\r\t\u0000=+@;<>Nntf');

export function bytesOf({ text, changes }: Damaged): Buffer {
  let bytes = Buffer.from(text);
  for (const [kind, place, what] of changes) {
    const at = bytes.length === 0 ? 0 : place % bytes.length;
    const [before, rest] = [bytes.subarray(0, at), bytes.subarray(at)];
    const byte = Buffer.of(what < 200 ? (TELLING[what % TELLING.length] ?? 0) : what);
    if (kind === "flip") bytes = Buffer.concat([before, byte, rest.subarray(1)]);
    if (kind === "insert") bytes = Buffer.concat([before, byte, rest]);
    if (kind === "delete") bytes = Buffer.concat([before, rest.subarray(1 + (what % 20))]);
    if (kind === "double") bytes = Buffer.concat([before, rest.subarray(0, what), rest]);
    if (kind === "cut") bytes = before;
  }
  return bytes;
}

export const anyJson = fc.jsonValue({ maxDepth: 3 });
