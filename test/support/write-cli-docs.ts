import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { Redis } from "ioredis";
import pg from "pg";
import { resolvePostgres, resolveRedis } from "../../src/local/servers/resolve.ts";
import { clockVariables } from "../../src/local/servers/watchdog.ts";
import { startStandin } from "../../src/local/standin/server.ts";
import { type Step, TOUR } from "./cli-scenario.ts";
import { buildClock } from "./clock-library.ts";
import { openTerminal } from "./pseudo-terminal.ts";

/**
 * `npm run docs:cli`: runs every command on a terminal of 80 columns, on servers of its own and the stand-in, and writes what
 * it printed into docs/cli-output.md. The clock is moved to one day, the stand-in has one seed, and what still differs from run to run
 * (ports, times, random ids) is replaced. So a change of the text is a change of the product.
 */

const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const PAGE = join(ROOT, "docs/cli-output.md");
const [BEGIN, END] = ["<!-- outputs: npm run docs:cli -->\n", "<!-- /outputs -->"];
const NOW = "2026-11-22T09:00:00Z";
const UUIDS = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const SIZE = { columns: 80, rows: 24 };

const closers: (() => Promise<unknown> | unknown)[] = [];
try {
  if (process.env.CLOCK_OFFSET === undefined) underFixedClock();
  else await write();
} finally {
  for (const close of closers.reverse()) await close();
}

/** Starts this script again with the clock moved, since Node reads it long before this line. */
function underFixedClock(): void {
  const folder = temporary();
  const library = buildClock(folder);
  if (library === undefined)
    throw new Error("The clock cannot be moved: run on Linux with a C compiler (`cc`).");
  const offset = Math.round((Date.parse(NOW) - Date.now()) / 1000);
  const { PATH = "", HOME = "/tmp" } = process.env;
  const env = {
    PATH,
    HOME,
    LD_PRELOAD: library,
    CLOCK_OFFSET: `${offset}`,
    DOCKER_HOST: "unix:///nonexistent",
  };
  const { status } = spawnSync(process.execPath, [fileURLToPath(import.meta.url)], { stdio: "inherit", env });
  process.exitCode = status ?? 1;
}

async function write(): Promise<void> {
  const world = await prepare();
  const sections: string[] = [];
  for (const [title, steps] of Object.entries(TOUR)) {
    const blocks: string[] = [];
    for (const step of steps) {
      const block = await show(step, world);
      if (block !== undefined) blocks.push(block);
    }
    sections.push(`## ${title}\n\n\`\`\`console\n${blocks.join("\n\n")}\n\`\`\`\n`);
  }
  const page = readFileSync(PAGE, "utf8");
  const [from, to] = [page.indexOf(BEGIN), page.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${PAGE} lacks the lines ${BEGIN.trim()} and ${END}.`);
  writeFileSync(PAGE, `${page.slice(0, from)}${BEGIN}\n${sections.join("\n")}\n${page.slice(to)}`);
  // The page shows them too.
  if (world.problems.length > 0) throw new Error(world.problems.join("\n\n"));
}

interface World {
  readonly folder: string;
  /** Values that steps name in braces. */
  readonly values: Record<string, string>;
  /** What is different in each run, and what stands for it. */
  readonly changing: (readonly [found: RegExp | string, shown: string])[];
  /** Ids of the stand-in's seed, which stay. */
  readonly seeded: ReadonlySet<string>;
  readonly random: string[];
  /** Commands that ended otherwise than the tour says. */
  readonly problems: string[];
}

/** A Postgres with the login of the README, a Redis, a stand-in, and a folder to work in. */
async function prepare(): Promise<World> {
  const env = { PATH: process.env.PATH ?? "", ...clockVariables() };
  const server = await resolvePostgres({ env });
  closers.push(() => server.close());
  const redis = await resolveRedis({ env });
  closers.push(() => redis.close());
  const client = new Redis(redis.url);
  await client.config("SET", "requirepass", "");
  client.disconnect();
  const standin = await startStandin({ dataStart: "2026-10-01" });
  closers.push(() => standin.close());
  const superuser = new pg.Client({ connectionString: server.url });
  await superuser.connect();
  for (const role of ["usage_reader NOLOGIN", "usage_reader_masked NOLOGIN", "usage LOGIN PASSWORD 'usage'"])
    await superuser.query(`CREATE ROLE ${role}`);
  await superuser.query("CREATE DATABASE usage OWNER usage");
  await superuser.end();
  const { port } = new URL(server.url);
  const folder = temporary();
  const values = {
    folder,
    platform: standin.url,
    key: standin.apiKey,
    postgres: `postgres://usage:usage@127.0.0.1:${port}/usage`,
    redis: `redis://127.0.0.1:${new URL(redis.url).port}`,
    workspace: standin.organisation.workspaces[0]?.id ?? "",
    prices: join(folder, "prices.csv"),
    owners: join(folder, "owners.yaml"),
    body: join(folder, "deployment.json"),
    update: join(folder, "update.json"),
  };
  // As it is where it is installed: hints then name `usage-etl`, as the documents do.
  symlinkSync(join(ROOT, "src/cli.cjs"), join(folder, "usage-etl"));
  writeFileSync(
    values.owners,
    `rules:\n  - { name: "*-agent", owner: agents, cost_center: CC-200 }\n  - { workspace: ${values.workspace}, owner: research, cost_center: CC-100 }\nbudgets:\n  - { owner: research, amount: 40, currency: USD }\n  - { traces: 400000 }\n`,
  );
  writeFileSync(values.prices, "sku,unit_price,currency,valid_from\ntraces,0.0005,USD,2026-01-01\n");
  const revision = { source_revision_config: { image_uri: "example/agent:2" } };
  writeFileSync(values.update, JSON.stringify(revision));
  writeFileSync(values.body, JSON.stringify({ name: "agent", source: "external_docker", ...revision }));
  const organisation = await fetch(`${standin.url}/__standin/organisation`);
  return {
    folder,
    values,
    seeded: new Set([...((await organisation.text()).match(UUIDS) ?? [])]),
    random: [],
    problems: [],
    changing: [
      [folder, "/home/you/usage"],
      [standin.url, "http://127.0.0.1:8080"],
      [`127.0.0.1:${port}`, "127.0.0.1:5432"],
      [new URL(redis.url).host, "127.0.0.1:6379"],
      [/127\.0\.0\.1:\d{5}/g, "127.0.0.1:9464"],
      // In the narrow column of `config`.
      [/127\.0\.0\.1:\d{4} {2}env file$/g, "127.0.0.1:5432  env file"],
      [/^ {25}\d\/usage$/g, `${" ".repeat(25)}/usage`],
      // Most of a minute passes, and machines differ.
      [/T09:0\d(:\d\d)?(\.\d+)?Z/g, "T09:00Z"],
      [/\b\d+\.\d s\b/g, "0.5 s"],
      [/\b\d+(\.\d)? ms\b/g, "5 ms"],
      [/\b\d{4,7} MiB\b|\b[\d,]+ MiB free\b/g, "9,000 MiB free"],
      // The stand-in bills on: whether this is said depends on the second.
      [/^Not checked: whether other workspaces changed.*/g, ""],
      [/"(pid|ms)":\d+/g, '"$1":5'],
    ],
  };
}

/** Runs a command as a person does. Undefined if this release does not have it. */
async function show(step: Step, world: World): Promise<string | undefined> {
  const { folder, values } = world;
  const filled = (text: string) =>
    text.replaceAll(/\{(\w+)\}/g, (_, name: string) => values[name] ?? `(${name})`);
  const program = join(folder, "usage-etl");
  const terminal = openTerminal([process.execPath, program, ...filled(step.run).split(" ")], {
    ...SIZE,
    cwd: folder,
    env: environment(values),
  });
  closers.push(() => terminal.close());
  for (const [shows, text] of step.type ?? []) {
    await terminal.shows(shows, 60_000);
    terminal.type(filled(text));
  }
  const code = await terminal.ended;
  const lines = (await terminal.wholeLines()).map((line) => line.trimEnd());
  if (code === 2 && lines.some((line) => line.includes("unknown command"))) {
    process.stderr.write(`left out, since there is no such command: ${step.run}\n`);
    return undefined;
  }
  if (code !== (step.code ?? 0)) world.problems.push(`${step.run} ended with ${code}:\n${lines.join("\n")}`);
  if (step.keep !== undefined) {
    const [name, pattern] = step.keep;
    values[name] = pattern.exec(lines.join("\n"))?.[1] ?? `(${name})`;
  }
  const shown =
    lines.length > (step.lines ?? Number.POSITIVE_INFINITY) ? [...lines.slice(0, step.lines), "..."] : lines;
  process.stderr.write(`ran ${step.run}\n`);
  return [`$ usage-etl ${filled(step.run)}`, ...shown]
    .map((line) => final(line, world))
    .join("\n")
    .trimEnd();
}

function environment({ platform = "" }: World["values"]): Record<string, string> {
  const { PATH = "", HOME = "/tmp" } = process.env;
  const others = { USAGE_CONTROL_PLANE_URL: platform, USAGE_DEPLOYMENT_URL: platform };
  const compiled = { NODE_COMPILE_CACHE: join(ROOT, "node_modules/.cache/node") };
  return {
    PATH,
    HOME,
    NO_COLOR: "1",
    DOCKER_HOST: "unix:///nonexistent",
    ...compiled,
    ...others,
    ...clockVariables(),
  };
}

/** The line with what changes from run to run replaced. */
function final(line: string, { changing, seeded, random }: World): string {
  let text = line;
  for (const [found, shown] of changing) text = text.replaceAll(found, shown);
  return text.replaceAll(UUIDS, (id) => {
    if (seeded.has(id)) return id;
    if (!random.includes(id)) random.push(id);
    return `00000000-0000-4000-8000-${`${random.indexOf(id) + 1}`.padStart(12, "0")}`;
  });
}

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), "usage-etl-docs-"));
  // Postgres runs as another user, and loads the clock from there.
  chmodSync(folder, 0o755);
  closers.push(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}
