import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { Command } from "commander";
import { table } from "../../src/cli/report/output.ts";
import { connectionVariables } from "./floor.ts";
import { median, openDatabases, query, runChild, startChild } from "./harness.ts";
import type { Load, Loaded } from "./measured.ts";
import type { PeerAnswer, PeerTask } from "./peer.ts";
import { NODE_OPTIONS } from "./processes.ts";
import { EXPORT_DAYS, type ExportShape, writeExport } from "./reconcile-data.ts";
import type { ExportServerTask } from "./reconcile-server.ts";
import type { ServerTask } from "./server.ts";
import { recordsOf, type Shape, sumOfTraces } from "./shapes.ts";

/**
 * `npm run bench:peers`: what a person would use instead, beside us in the same run: the same rows of users by day, from an
 * answer of the usage API or from its CSV export, into an empty table of Postgres. Programs that are missing are installed where
 * this runs as root on Debian, the SDK from npm into a folder that is removed at the end.
 */

const options = new Command("bench:peers")
  .option("--records <n>", "records", Number, 20_000)
  .option("--rounds <n>", "interleaved rounds", Number, 3)
  .parse()
  .opts<{ records: number; rounds: number }>();

const perDay = Math.ceil(options.records / EXPORT_DAYS);
const shape: Shape = {
  name: "one",
  about: "all in a single answer",
  workspaces: 1,
  usersPerWorkspace: perDay,
  days: EXPORT_DAYS,
  everyDays: 1,
};
const exported: ExportShape = { name: "one", workspaces: 1, usersPerWorkspace: perDay, everyDays: 1 };

interface Peer {
  readonly name: string;
  readonly input: "JSON" | "CSV";
  /** What we do that it does not. */
  readonly leavesOut: string;
  /** Why it cannot run here; undefined if it can. */
  missing(): string | undefined;
  /** From the request to the commit. */
  run(databaseUrl: string): Promise<PeerAnswer>;
  /** What its table holds, in SQL; undefined for one that stores nothing. */
  readonly stored?: string;
}

const DEADLINE_MS = 600_000;
const folder = mkdtempSync(join(tmpdir(), "usage-etl-peers-"));
const databases = await openDatabases();
const csv = join(folder, "export.csv");
await writeExport(exported, csv);
const serving: ServerTask = { shape, gzip: false };
const json = await startChild<{ url: string }>("./server.ts", serving);
const exporting: ExportServerTask = { shape: exported, file: csv };
const csvServer = await startChild<{ url: string }>("./reconcile-server.ts", exporting);

// An export by user names no workspace: who wants one asks for an export of each, and adds it.
const KEYED = `CREATE TABLE peer_usage (workspace_id text, user_id text, user_email text, bucket_start timestamptz, traces bigint,
  PRIMARY KEY (user_id, bucket_start))`;
const STORED = "SELECT count(*)::text AS records, sum(traces)::bigint::text AS traces FROM peer_usage";

const peers: readonly Peer[] = [
  {
    name: "usage-etl",
    input: "JSON",
    leavesOut: "",
    missing: () => undefined,
    run: (databaseUrl) => {
      const task: Load = { what: "load", days: shape.days, databaseUrl, platformUrl: json.answer.url };
      return runChild<Loaded>("./measured.ts", task, NODE_OPTIONS);
    },
    stored: "SELECT count(*)::text AS records, sum(traces)::bigint::text AS traces FROM usage.dated_record",
  },
  {
    name: "a script: fetch, zod, kysely inserts of 1,000 rows that replace by key",
    input: "JSON",
    leavesOut: "records that vanish from an answer, restatements, names over time, splitting, proof",
    missing: () => undefined,
    run: async (databaseUrl) => {
      await query(databaseUrl, KEYED);
      return runPeer("script", databaseUrl);
    },
    stored: STORED,
  },
  {
    name: "pgloader, COPY into a keyed table",
    input: "CSV",
    leavesOut:
      "asking for the export, workspaces, loading again over what is there (rows are refused by their key), names, proof",
    missing: () => installed("pgloader", "pgloader"),
    run: async (databaseUrl) => {
      await query(databaseUrl, KEYED);
      const { host, port, user, database } = partsOf(databaseUrl);
      const file = join(folder, "downloaded.csv");
      const script = join(folder, "usage.load");
      writeFileSync(
        script,
        `LOAD CSV FROM '${file}'
           (bucket_start, bucket_end, workspace_id, workspace_name, project_id, project_name, user_id, user_email, api_key, traces)
         INTO postgresql://${user}@${host}:${port}/${database} TARGET TABLE public.peer_usage
           (user_id, user_email, bucket_start, traces)
         WITH skip header = 1, fields terminated by ',', fields optionally enclosed by '"';\n`,
      );
      return timed(async () => {
        await download(file);
        return [await runProgram("pgloader", ["--quiet", "--on-error-stop", script], databaseUrl)];
      });
    },
    stored: STORED,
  },
  {
    name: "csvsql --insert (csvkit), column types guessed",
    input: "CSV",
    leavesOut:
      "asking for the export, workspaces, a key, loading again (rows are added once more), names, proof",
    missing: () => installed("csvsql", "csvkit", "python3-psycopg2"),
    run: (databaseUrl) => {
      const { host, port, user, database } = partsOf(databaseUrl);
      const file = join(folder, "downloaded.csv");
      const to = `postgresql://${user}@${host}:${port}/${database}`;
      return timed(async () => {
        await download(file);
        return [
          await runProgram("csvsql", ["--db", to, "--insert", "--tables", "peer_usage", file], databaseUrl),
        ];
      });
    },
    stored: `SELECT count(*)::text AS records, sum("Traces")::bigint::text AS traces FROM peer_usage`,
  },
  {
    name: "CloudQuery's JavaScript SDK, to Arrow records in memory (nothing is stored)",
    input: "JSON",
    leavesOut:
      "Postgres: another plugin writes there; replacing a window, restatements, names over time, proof",
    missing: () => {
      const npm = spawnSync(
        "npm",
        "install --no-audit --no-fund --ignore-scripts --prefix"
          .split(" ")
          .concat(folder, "@cloudquery/plugin-sdk-javascript@0.1.25"),
        { encoding: "utf8" },
      );
      return npm.status === 0 ? undefined : `npm install ended with ${npm.status}: ${npm.stderr.slice(-300)}`;
    },
    run: (databaseUrl) => runPeer("cloudquery", databaseUrl),
  },
];

function runPeer(way: PeerTask["way"], databaseUrl: string): Promise<PeerAnswer> {
  const task: PeerTask = { way, shape, databaseUrl, platformUrl: json.answer.url, folder };
  return runChild<PeerAnswer>("./peer.ts", task);
}

async function timed(work: () => Promise<number[]>): Promise<PeerAnswer> {
  const startedAt = performance.now();
  const peaks = await work();
  return { ms: performance.now() - startedAt, peakMb: Math.max(...peaks) };
}

async function download(file: string): Promise<void> {
  const answer = await fetch(`${csvServer.answer.url}/api/v1/orgs/current/billing/granular-usage/export`);
  if (answer.body === null) throw new Error("The export has no body.");
  await pipeline(Readable.fromWeb(answer.body), createWriteStream(file));
}

/** Resolves to its peak memory in MB. */
async function runProgram(program: string, args: readonly string[], databaseUrl: string): Promise<number> {
  // A URL on the command line would show the password to everyone.
  const env = { ...process.env, ...connectionVariables(databaseUrl) };
  const measured = join(folder, "time");
  const child = spawn("/usr/bin/time", ["-o", measured, "-f", "%M", program, ...args], {
    env,
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    timeout: DEADLINE_MS,
  });
  let said = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  }
  const [code] = await once(child, "close");
  if (code !== 0) throw new Error(`${program} ended with ${code}: ${said.slice(-1_000)}`);
  return (Number(readFileSync(measured, "utf8").trim().split("\n").at(-1)) * 1024) / 1e6;
}

function installed(program: string, ...packages: readonly string[]): string | undefined {
  const wanted = [program, "/usr/bin/time"];
  const has = () => wanted.every((name) => spawnSync("sh", ["-c", `command -v ${name}`]).status === 0);
  if (has()) return undefined;
  if (process.getuid?.() === 0) {
    spawnSync("apt-get", ["install", "-y", "--no-install-recommends", "time", ...packages], {
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
  return has() ? undefined : `${program} is not on PATH`;
}

function partsOf(databaseUrl: string) {
  const { hostname, port, username, pathname } = new URL(databaseUrl);
  return { host: hostname, port: port || "5432", user: username, database: pathname.slice(1) };
}

/** Whoever stored something else was not faster. */
async function check(peer: Peer, databaseUrl: string): Promise<void> {
  if (peer.stored === undefined) return;
  const [found] = await query(databaseUrl, peer.stored);
  const expected = { records: String(recordsOf(shape)), traces: String(sumOfTraces(shape)) };
  if (found?.records === expected.records && found.traces === expected.traces) return;
  throw new Error(`${peer.name}: stored ${JSON.stringify(found)}, not ${JSON.stringify(expected)}`);
}

try {
  const reasons = new Map(peers.map((peer) => [peer, peer.missing()]));
  const answers = new Map<Peer, PeerAnswer[]>(peers.map((peer) => [peer, []]));
  for (let round = 0; round < options.rounds; round++) {
    for (const peer of round % 2 === 0 ? peers : peers.toReversed()) {
      if (reasons.get(peer) !== undefined) continue;
      const databaseUrl = await databases.create();
      const answer = await peer.run(databaseUrl);
      await check(peer, databaseUrl);
      await databases.drop(databaseUrl);
      answers.get(peer)?.push(answer);
    }
  }
  const ours = [...answers.values()][0] ?? [];
  process.stdout.write(
    `${table(
      ["way", "from", "s", "x of ours", "peak MB", "leaves out"],
      peers.map((peer) => {
        const own = answers.get(peer) ?? [];
        const reason = reasons.get(peer);
        if (reason !== undefined) return [peer.name, peer.input, "not run", null, null, reason];
        const ratios = own.map(({ ms }, round) => ms / (ours[round]?.ms ?? Number.NaN));
        return [
          peer.name,
          peer.input,
          (median(own.map(({ ms }) => ms)) / 1000).toFixed(2),
          median(ratios).toFixed(1),
          Math.round(Math.max(...own.map(({ peakMb }) => peakMb))),
          peer.leavesOut,
        ];
      }),
    )}\n${recordsOf(shape).toLocaleString("en-US")} records into an empty database, medians of ${options.rounds} interleaved rounds. Programs of their own pay for their start. ${databases.version}, Node ${process.version}.\n`,
  );
} finally {
  await json.close();
  await csvServer.close();
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
}
