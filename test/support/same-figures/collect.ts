import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { clockVariables } from "../cli.ts";
import { now } from "../clock.ts";
import { resolveTestPostgres } from "../test-postgres.ts";
import { openDemo } from "./demo.ts";
import { buildHistories } from "./histories.ts";
import { findPages, readFigures } from "./pages.ts";
import { asJson, type Ended, type Program, programOf } from "./program.ts";
import { readViews } from "./views.ts";

const [tree = "", to = "", histories = "50", pathsFile] = process.argv.slice(2);
const HISTORIES_FROM = "2026-02-03T09:17:00Z";
const DEMO_AT = "2026-11-22T09:17:00Z";

const clock = process.env.CLOCK_OFFSET ?? "";
// The clock library reads zeros so far: this is the real time.
const realStart = Math.floor(now() / 1000);
const realMono = performance.now();

function setClock(instant: number): void {
  const from = BigInt(realStart + Math.floor((performance.now() - realMono) / 1000));
  const bytes = Buffer.alloc(24);
  bytes.writeBigInt64LE(BigInt(Math.floor(instant / 1000)) - from, 0);
  bytes.writeBigInt64LE(from, 8);
  bytes.writeBigInt64LE(10_000_000n, 16);
  writeFileSync(clock, bytes, { flag: "r+" });
}

const folder = mkdtempSync(join(tmpdir(), "usage-etl-collect-"));
setClock(Date.parse(HISTORIES_FROM));
const server = await resolveTestPostgres({ PATH: process.env.PATH ?? "", ...clockVariables() });
try {
  const program = await programOf(tree);
  await historiesInto(join(to, "histories"), program);
  setClock(Date.parse(DEMO_AT));
  await demoInto(join(to, "demo"), program);
} finally {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
}
// Idle connections of what ran in this process must not keep it.
process.exit(0);

async function historiesInto(out: string, program: Program): Promise<void> {
  mkdirSync(out, { recursive: true });
  const url = await database("histories");
  const said = await buildHistories({ program, url, folder, count: Number(histories), setClock });
  for (const [name, value] of Object.entries(said)) writeFileSync(join(out, `${name}.json`), value);
  await readViews(url, out);
}

async function demoInto(out: string, program: Program): Promise<void> {
  mkdirSync(out, { recursive: true });
  const url = await database("demo");
  const demo = await openDemo({ tree, url, folder });
  try {
    await finishBackfill((...args) => program([...args], { USAGE_ENV_FILE: demo.envFile }));
    for (const args of demo.commands()) {
      const ended = await program(args, { USAGE_ENV_FILE: demo.envFile });
      writeFileSync(join(out, `${fileNameOf(args.join(" "))}.json`), asJson(ended));
    }
    const paths =
      pathsFile === undefined ? await findPages(demo.pages) : readFileSync(pathsFile, "utf8").split("\n");
    for (const path of paths) {
      const figures = await readFigures(demo.pages, path);
      writeFileSync(join(out, `${fileNameOf(path)}.page`), `${figures.join("\n")}\n`);
    }
    writeFileSync(join(out, "paths"), paths.join("\n"));
    await readViews(url, out);
  } finally {
    await demo.close();
  }
}

/** The demo pauses a backfill, after more or fewer of its requests: all of it is loaded, so that the figures are the same. */
async function finishBackfill(run: (...args: string[]) => Promise<Ended>): Promise<void> {
  const { stdout } = await run("backfill", "list");
  const [paused] = JSON.parse(stdout) as readonly { backfillId: number }[];
  if (paused === undefined) throw new Error("The demo has no backfill.");
  const { code, stderr } = await run("backfill", "resume", String(paused.backfillId));
  if (code !== 0) throw new Error(stderr);
  for (let looks = 0; looks < 300; looks++) {
    const shown = await run("backfill", "show", String(paused.backfillId));
    if (/"state":"(?!running|paused)/.test(shown.stdout)) return;
    await new Promise((done) => setTimeout(done, 500));
  }
  throw new Error("The backfill of the demo does not end.");
}

function fileNameOf(text: string): string {
  return text.replaceAll("/", ":").replaceAll(/([0-9a-f]{8})(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, "$1");
}

async function database(name: string): Promise<string> {
  const client = new pg.Client({ connectionString: server.url });
  await client.connect();
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
  const url = new URL(server.url);
  url.pathname = `/${name}`;
  return url.href;
}
