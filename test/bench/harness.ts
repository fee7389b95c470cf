import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { InvalidArgumentError } from "commander";
import pg from "pg";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { openStore } from "../../src/core/store/db/database.ts";
import { migrate } from "../../src/core/store/migrate.ts";
import { resolveTestPostgres } from "../support/test-postgres.ts";
import { countedOf, parentOf } from "./processes.ts";

/**
 * What the benchmarks share: options and medians, what they hand to `npm run bench -- --all`, processes of their own files, and
 * databases that hold the schema and nothing else.
 */

/** An option: a whole number from 1 on. */
export function whole(text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("It is not a whole number.");
  return value;
}

/** An option that may be repeated. */
export function wholes(text: string, all: number[] = []): number[] {
  return [...all, whole(text)];
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length / 2;
  const [low, high] = [sorted[Math.ceil(middle) - 1] ?? Number.NaN, sorted[Math.floor(middle)] ?? Number.NaN];
  return (low + high) / 2;
}

/** One line of the table of `npm run bench -- --all`: lower is better. Low and high are those of the rounds. */
export interface Measure {
  /** Stays the same from release to release. */
  readonly name: string;
  /** What 1 stands for: a floor of the same run, or a unit. */
  readonly of: string;
  readonly median: number;
  readonly low: number;
  readonly high: number;
}

/** Hands a measure, of one value for each round, to `npm run bench -- --all`, if that is what started this process. */
export function hand(name: string, of: string, values: readonly number[]): void {
  const measure: Measure = {
    name,
    of,
    median: median(values),
    low: Math.min(...values),
    high: Math.max(...values),
  };
  process.send?.(measure);
}

/** What a measured process took. */
export interface Took {
  readonly ms: number;
  /** User and system time of this process, from the first request on. */
  readonly cpuMs: number;
  /** The same, from the start of the process on. */
  readonly wholeCpuMs: number;
  readonly idleMb: number;
  readonly peakMb: number;
}

/** One round beside a floor, which is undefined where there is nothing to hold it against. */
export interface Round<T extends Took> {
  readonly floorMs: number | undefined;
  readonly own: T;
}

/** Both sides of a round: every other time the other one first. */
export async function bothSides<T extends Took>(
  round: number,
  floor: () => Promise<number | undefined>,
  own: () => Promise<T>,
): Promise<Round<T>> {
  const early = round % 2 === 1 ? await own() : undefined;
  const floorMs = await floor();
  return { floorMs, own: early ?? (await own()) };
}

/** Heads of what `besideFloor` returns. */
export const BESIDE_FLOOR = "records,answers,s,floor s,x,records/s,answers/s,CPU s,idle MB,peak MB".split(
  ",",
);

/**
 * Hands on what is held against the release before, and returns a line of medians. Ratios are the rounds' own: both sides of one meet
 * the same moods of the machine.
 */
export function besideFloor(
  rounds: readonly Round<Took>[],
  { name, records, responses, unit }: { name: string; records: number; responses: number; unit: string },
): (string | number | null)[] {
  const middle = (of: (took: Took) => number) => median(rounds.map(({ own }) => of(own)));
  const floors = rounds.flatMap(({ floorMs }) => floorMs ?? []);
  const ratios = rounds.flatMap(({ floorMs, own }) => (floorMs === undefined ? [] : [own.ms / floorMs]));
  const peaks = rounds.map(({ own }) => own.peakMb);
  if (ratios.length > 0) hand(name, "psql on the same rows", ratios);
  else
    hand(
      name,
      `ms of CPU an ${unit}`,
      rounds.map(({ own }) => own.cpuMs / responses),
    );
  hand(`${name}, peak memory`, "MB", peaks);
  const seconds = middle(({ ms }) => ms) / 1000;
  return [
    records,
    responses,
    seconds.toFixed(2),
    ratios.length === 0 ? null : (median(floors) / 1000).toFixed(2),
    ratios.length === 0 ? null : median(ratios).toFixed(2),
    Math.round(records / seconds),
    (responses / seconds).toFixed(1),
    (middle(({ cpuMs }) => cpuMs) / 1000).toFixed(2),
    Math.round(middle(({ idleMb }) => idleMb)),
    // The highest of the rounds: a bound is kept always or not at all.
    Math.round(Math.max(...peaks)),
  ];
}

/** Starts a file of this folder as a process of its own, hands it `task`, and waits for its first message. */
export async function startChild<T>(
  file: string,
  task: unknown,
  nodeOptions: readonly string[] = [],
): Promise<{ response: T; close: () => Promise<void> }> {
  // As the command line starts: compiling all of the program anew would count as its memory.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache") };
  const child = fork(new URL(file, import.meta.url), [], { execArgv: [...nodeOptions], env });
  child.send(task as object);
  return {
    response: await firstMessage<T>(child, file),
    close: async () => {
      if (child.exitCode !== null) return;
      const gone = once(child, "exit");
      if (child.connected) child.disconnect();
      await gone;
    },
  };
}

/** The response of a child that ends by itself. */
export async function runChild<T>(
  file: string,
  task: unknown,
  nodeOptions: readonly string[] = [],
): Promise<T> {
  const { response, close } = await startChild<T>(file, task, nodeOptions);
  await close();
  return response;
}

function firstMessage<T>(child: ChildProcess, file: string): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as T));
    child.once("exit", (code) => reject(new Error(`${file} ended with ${code} before it responded`)));
    child.once("error", reject);
  });
}

/** The other end: the task that `startChild` sent. */
export async function takeTask<T>(): Promise<T> {
  const [task] = await once(process, "message");
  return task as T;
}

export function response(value: object): void {
  process.send?.(value);
}

/** A child that is a platform: it responds with its address, and ends with its parent. */
export function serveAs(listener: RequestListener): void {
  process.once("disconnect", () => process.exit());
  const server = createServer(listener);
  server.listen(0, "127.0.0.1", () => {
    response({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
  });
}

export async function openDatabases() {
  const service = await resolveTestPostgres();
  const prefix = `usage_etl_bench_${randomBytes(4).toString("hex")}`;
  const urlOf = (name: string) => Object.assign(new URL(service.url), { pathname: `/${name}` }).href;
  const template = `${prefix}_template`;
  const admin = new pg.Client({ connectionString: service.url });
  await admin.connect();
  await admin.query(`CREATE DATABASE ${template}`);
  const store = openStore({ url: urlOf(template) });
  await migrate(store);
  await store.close();
  const { rows } = await admin.query(
    `SELECT version() AS version, current_setting('fsync') AS fsync, current_setting('shared_buffers') AS buffers`,
  );
  let created = 0;
  const settings = `${service.origin}, fsync ${rows[0].fsync}, shared_buffers ${rows[0].buffers}`;
  const version = /^\S+ \S+/.exec(rows[0].version)?.[0] ?? "";
  return {
    machine: `${version} (${settings}), Node ${process.version}, ${availableParallelism()} cores shared by all.`,
    async create(setup?: string): Promise<string> {
      const name = `${prefix}_${++created}`;
      await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
      if (setup !== undefined) await query(urlOf(name), setup);
      return urlOf(name);
    },
    /** Without a schema. */
    async createEmpty(): Promise<string> {
      const name = `${prefix}_${++created}`;
      await admin.query(`CREATE DATABASE ${name}`);
      return urlOf(name);
    },
    /** Before each measurement, so that none pays for what another left to be written or cleaned. */
    async settle(url: string): Promise<void> {
      await query(url, "VACUUM (ANALYZE)");
      // A server that somebody named may not let us.
      if (service.origin !== "named") await admin.query("CHECKPOINT");
    },
    async drop(url: string): Promise<void> {
      await admin.query(`DROP DATABASE ${new URL(url).pathname.slice(1)} WITH (FORCE)`);
    },
    async close(): Promise<void> {
      if (service.origin === "named") await admin.query(`DROP DATABASE ${template} WITH (FORCE)`);
      await admin.end();
      await service.close();
    },
  };
}

/** Rows of one statement, in a session of its own. */
export async function query(url: string, text: string): Promise<Record<string, string>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}

/** The one value of a statement, as a number. */
export async function value(url: string, text: string): Promise<number> {
  return Number(Object.values((await query(url, text))[0] ?? {})[0]);
}

/** CPU time in ms of the ended processes of a Postgres on this machine, to hundredths of a second. */
export async function backendsOf(url: string): Promise<number> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("SELECT pg_backend_pid() AS pid");
    return countedOf(parentOf(rows[0].pid)).ended;
  } finally {
    await client.end();
  }
}

/** Traces that are stored, by each dimension. */
export function storedTraces(url: string): Promise<number[]> {
  return Promise.all(
    GROUPINGS.map((by) => value(url, `SELECT coalesce(sum(traces), 0) FROM reporting.fct_usage_${by}_daily`)),
  );
}
