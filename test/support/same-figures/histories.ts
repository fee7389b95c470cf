import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DAY_MS, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { type Dice, dice } from "../../../src/features/standin/engine/random.ts";
import { type Standin, startStandin } from "../../../src/features/standin/server.ts";
import { now } from "../clock.ts";
import { asJson, type Program } from "./program.ts";

const DIMENSIONS = ["workspace", "project", "user", "api_key"] as const;
const STEPS = 7;
const DAYS_BEFORE = { least: 12, most: 40 };

interface HistoriesInput {
  readonly program: Program;
  readonly url: string;
  readonly folder: string;
  readonly count: number;
  readonly setClock: (instant: number) => void;
}

interface History {
  readonly slug: string;
  readonly dice: Dice;
  readonly standin: Standin;
  readonly dataStart: number;
  readonly workspaceIds: readonly string[];
  readonly env: Record<string, string>;
  readonly lines: string[];
  readonly run: (...args: string[]) => Promise<void>;
}

/**
 * Loads one database through random histories, one source each: syncs, backfills, faults, changed counts, lost access, proofs,
 * prices, owners and closes, while the clock moves on. The stand-in is that of this tree, whichever tree's program loads.
 * Returns what the commands printed, by source.
 */
export async function buildHistories(input: HistoriesInput): Promise<Record<string, string>> {
  const { program, url, folder, count, setClock } = input;
  await expectDone(program(["migrate"], { DATABASE_URL: url }));
  const said: Record<string, string> = {};
  const rules: string[] = [];
  for (let seed = 1; seed <= count; seed++) {
    const history = await begin(seed, input);
    const { random } = Math;
    Math.random = () => history.dice.next();
    try {
      for (let step = 0; step < STEPS; step++) {
        await takeStep(history, step === 0 ? "sync" : history.dice.pick(KINDS));
        if (step === 2) await price(history, folder);
        if (step === 3) await own(history, rules, folder);
        setClock(now() + history.dice.pick([2, 5, 24, 24, 49]) * HOUR_MS);
      }
      history.standin.faults.clear();
      await history.run("sync", "--inline");
      await history.run("status");
    } finally {
      Math.random = random;
      await history.standin.close();
    }
    said[history.slug] = history.lines.join("\n");
  }
  return said;
}

async function expectDone(command: ReturnType<Program>): Promise<void> {
  const { code, stderr } = await command;
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
}

async function begin(seed: number, { program, url, folder }: HistoriesInput): Promise<History> {
  const own = dice(seed);
  const slug = `h${String(seed).padStart(2, "0")}`;
  const today = Math.floor(now() / DAY_MS) * DAY_MS;
  const before = DAYS_BEFORE.least + own.below(DAYS_BEFORE.most - DAYS_BEFORE.least);
  const dataStart = today - before * DAY_MS;
  const standin = await startStandin({ seed: 1000 + seed, scale: 0.3, dataStart: dayOf(dataStart) });
  const used = new Set(standin.organisation.streams.map(({ project }) => project.workspace.id));
  const workspaceIds = [...used].slice(0, 2);
  const source = {
    slug,
    baseUrl: standin.url,
    apiKey: standin.apiKey,
    workspaceIds,
    dataStart: dayOf(dataStart),
    rateLimit: 1000,
  };
  const file = join(folder, `${slug}.json`);
  writeFileSync(file, JSON.stringify([source]));
  const env = {
    DATABASE_URL: url,
    USAGE_SOURCES_FILE: file,
    USAGE_HOURLY_FOR: "P2D",
    USAGE_LOG_LEVEL: "silent",
  };
  const lines: string[] = [];
  const run = async (...args: string[]) => {
    const ended = await program(args, env);
    lines.push(`$ ${args.join(" ").replaceAll(folder, "")}`, asJson(ended));
  };
  return { slug, dice: own, standin, dataStart, workspaceIds, env, lines, run };
}

const KINDS = [
  "sync",
  "sync",
  "backfill",
  "fault",
  "change",
  "lose",
  "prove",
  "prove",
  "totals",
  "close",
] as const;

async function takeStep(history: History, step: (typeof KINDS)[number]): Promise<void> {
  const { dice: own, standin, run } = history;
  history.lines.push(`# ${step} at ${new Date().toISOString().slice(0, 13)}`);
  switch (step) {
    case "sync":
      return run("sync", "--inline");
    case "backfill": {
      const { from, to } = someDays(history, 20);
      const stride = own.pick(["day", "day", "hour"]);
      const dimension = own.pick(["all", ...DIMENSIONS]);
      const only = dimension === "all" ? [] : ["--group-by", dimension];
      const reprocess = own.pick(["missing", "all"]);
      const range = ["--from", from, "--to", to, "--stride", stride, "--reprocess", reprocess];
      return run("backfill", "--inline", ...range, ...only);
    }
    case "fault": {
      const { from, to } = someDays(history, 3);
      const during = { from: `${from}T00:00:00Z`, to: `${to}T00:00:00Z` };
      const fault = { kind: "status", status: own.pick([404, 422]) } as const;
      // It lasts, so the order of requests does not matter.
      const match = { during, query: { group_by: own.pick(DIMENSIONS) } };
      standin.faults.script({ fault, times: 10_000, match });
      return run("backfill", "--inline", "--from", from, "--to", to, "--reprocess", "all");
    }
    case "change": {
      change(history);
      const { from, to } = someDays(history, 60);
      return run("backfill", "--inline", "--from", from, "--to", to, "--reprocess", "all");
    }
    case "lose": {
      const workspace = own.pick(
        standin.organisation.workspaces.filter(({ id }) => history.workspaceIds.includes(id)),
      );
      standin.access.setReadable(workspace, false);
      await run("sync", "--inline");
      standin.access.setReadable(workspace, true);
      return;
    }
    case "prove": {
      const { from, to } = someDays(history, 40);
      return run("reconcile", "--from", from, "--to", to, ...own.pick([[], ["--repair"]]));
    }
    case "totals":
      return run("totals", "--reach", "all");
    case "close": {
      const month = new Date();
      month.setUTCDate(0);
      await run("reconcile", "--repair", "--from", dayOf(history.dataStart), "--to", dayOf(now()));
      await run("close", month.toISOString().slice(0, 7), ...own.pick([[], ["--without-costs"]]));
    }
  }
}

function change({ dice: own, standin, dataStart, workspaceIds }: History): void {
  const streams = standin.organisation.streams.filter(({ project }) =>
    workspaceIds.includes(project.workspace.id),
  );
  const { project, user, key } = own.pick(streams);
  const at = dataStart + own.below(Math.floor((now() - dataStart) / DAY_MS)) * DAY_MS + 5 * HOUR_MS;
  standin.ledger.change({ project, user, key, at }, own.pick([7, -3]));
}

async function price({ dice: own, slug, run }: History, folder: string): Promise<void> {
  const file = join(folder, `${slug}-prices.csv`);
  const head = "sku,unit_price,currency,valid_from,source,from_quantity,counted_over";
  const [low, high] = [own.pick(["0.0005", "0.005"]), own.pick(["0.00045", "0.004"])];
  const line = (amount: string, from: number) => `traces,${amount},USD,2026-01-01,${slug},${from},source`;
  writeFileSync(file, [head, line(low, 0), line(high, own.pick([500, 20_000])), ""].join("\n"));
  return run("prices", "import", file);
}

async function own(history: History, rules: string[], folder: string): Promise<void> {
  const { dice: own, slug, standin, workspaceIds, run } = history;
  const [first, second] = workspaceIds;
  const project = own.pick(standin.organisation.projects.filter((one) => one.workspace.id === first));
  rules.push(
    `  - { source: ${slug}, project: ${project?.id ?? "none"}, owner: team-${own.below(5)}, cost_center: CC-${own.below(3)} }`,
    `  - source: ${slug}\n    workspace: ${second}\n    shares:\n      - { owner: a-${slug}, share: 0.7 }\n      - { owner: team-1, share: 0.3 }`,
  );
  const file = join(folder, "owners.yaml");
  writeFileSync(file, `rules:\n${rules.join("\n")}\nbudgets:\n  - { owner: team-1, traces: 5000 }\n`);
  return run("owners", "apply", file);
}

function someDays({ dice: own, dataStart }: History, most: number): { from: string; to: string } {
  const today = Math.floor(now() / DAY_MS) * DAY_MS;
  const days = (today - dataStart) / DAY_MS;
  const length = 1 + own.below(most);
  const first = dataStart + own.below(Math.max(1, days + 1 - length)) * DAY_MS;
  return { from: dayOf(first), to: dayOf(Math.min(first + length * DAY_MS, today + DAY_MS)) };
}

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
