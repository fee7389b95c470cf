import { type ChildProcess, fork } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { InvalidArgumentError } from "commander";
import pg from "pg";
import { openStore } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { resolveTestPostgres } from "../support/test-postgres.ts";

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

/** Starts a file of this folder as a process of its own, hands it `task`, and waits for its first message. */
export async function startChild<T>(
  file: string,
  task: unknown,
  nodeOptions: readonly string[] = [],
): Promise<{ answer: T; close: () => Promise<void> }> {
  // As the command line starts: compiling all of the program anew would count as its memory.
  const env = { ...process.env, NODE_COMPILE_CACHE: join(tmpdir(), "node-compile-cache") };
  const child = fork(new URL(file, import.meta.url), [], { execArgv: [...nodeOptions], env });
  child.send(task as object);
  return {
    answer: await firstMessage<T>(child, file),
    close: async () => {
      if (child.exitCode !== null) return;
      const gone = once(child, "exit");
      if (child.connected) child.disconnect();
      await gone;
    },
  };
}

/** The answer of a child that ends by itself. */
export async function runChild<T>(
  file: string,
  task: unknown,
  nodeOptions: readonly string[] = [],
): Promise<T> {
  const { answer, close } = await startChild<T>(file, task, nodeOptions);
  await close();
  return answer;
}

function firstMessage<T>(child: ChildProcess, file: string): Promise<T> {
  return new Promise((resolve, reject) => {
    child.once("message", (message) => resolve(message as T));
    child.once("exit", (code) => reject(new Error(`${file} ended with ${code} before it answered`)));
    child.once("error", reject);
  });
}

/** The other end: the task that `startChild` sent. */
export async function takeTask<T>(): Promise<T> {
  const [task] = await once(process, "message");
  return task as T;
}

export function answer(value: object): void {
  process.send?.(value);
}

/** A child that is a platform: it answers with its address, and ends with its parent. */
export function serveAs(listener: RequestListener): void {
  process.once("disconnect", () => process.exit());
  const server = createServer(listener);
  server.listen(0, "127.0.0.1", () => {
    answer({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
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
  return {
    version: /^\S+ \S+/.exec(rows[0].version)?.[0] ?? "",
    settings: `${service.origin}, fsync ${rows[0].fsync}, shared_buffers ${rows[0].buffers}`,
    async create(setup?: string): Promise<string> {
      const name = `${prefix}_${++created}`;
      await admin.query(`CREATE DATABASE ${name} TEMPLATE ${template}`);
      if (setup !== undefined) await query(urlOf(name), setup);
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
