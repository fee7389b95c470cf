import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { monthAt, monthBefore } from "../../src/core/domain/months/month.ts";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import type { Meter } from "../../src/core/domain/usage/meter.ts";
import { readBill } from "../../src/features/costs/read-bill.ts";
import type { StandinOptions } from "../../src/features/standin/server.ts";
import { billRows } from "../support/bill-rows.ts";
import { now } from "../support/clock.ts";
import { type Bench, setReadable, setup, workspaceAt } from "../support/source.ts";
import { type GuessName, guessNames, guessOf, type Outcome, without } from "./guesses.ts";

/**
 * Each guess about the platform may be wrong. Then the figures are right all the same, or what is missing is not shown as loaded
 * and something says why. A new guess is one entry here and a row of docs/platform.md.
 */

const AT = now();
const TODAY = floorToGrid(AT, DAY_MS);

type Kind = "days" | "month" | "kinds";

function kindOf(name: GuessName): Kind {
  if (/^(totals|list|limits|bill|statistics)/.test(name)) return "month";
  return name === "tiers-overlap" || name === "one-kind" ? "kinds" : "days";
}

const USED: Readonly<Record<Kind, readonly Meter[]>> = {
  days: ["traces", "sandboxes", "evaluators"],
  month: ["traces"],
  kinds: ["traces", "longlived", "shortlived", "deployments"],
};

async function benchOf(guesses: readonly GuessName[], kind: Kind): Promise<Bench> {
  const month = monthBefore(monthAt(AT - 4 * DAY_MS));
  const days = kind === "month" ? (TODAY - Date.parse(month.start)) / DAY_MS + 1 : 5;
  const standin: Omit<StandinOptions, "now"> = {
    scale: 0.34,
    contract: kind === "kinds" ? "day-granular" : "tiered",
    sandboxes: "on",
    evaluators: "on",
    tags: "on",
    deploymentStart: new Date(TODAY - days * DAY_MS).toISOString().slice(0, 10),
    ...without(guesses),
  };
  const hourlyForMs = kind === "days" ? days * DAY_MS : HOUR_MS;
  const workspaces = guesses.includes("list-cut") ? [] : guesses.join() === "empty-204" ? [4] : [0, 1];
  const bench = await setup({ now: AT, days, workspaces, hourlyForMs, standin });
  bench.standin.bill.limits.push({ workspaceId: null, limitType: "monthly_traces", value: 7 });
  if (guesses.includes("statistics-of-all")) {
    bench.standin.access.listsUnreadable = true;
    setReadable(bench.standin, 1, false);
  }
  return bench;
}

interface Figures {
  readonly lines: ReadonlyMap<string, { readonly scope: string; readonly at: number }>;
  readonly isLoaded: (scope: string, at: number) => boolean;
}

async function figuresOf({ sql }: Bench): Promise<Figures> {
  const scope = "concat_ws(' ', c.kind, c.trace_tier, c.group_by, c.stride, w.external_id) AS scope";
  const rows = await sql<{ scope: string; at: Date; line: string }>(
    `SELECT ${scope}, r.at, concat_ws(' ', e.external_id, s.measure, r.traces) AS line FROM (
       SELECT series_id, bucket_start AS at, traces FROM usage.hourly_record
       UNION ALL SELECT series_id, bucket_start::timestamp AT TIME ZONE 'UTC', traces FROM usage.dated_record
     ) r JOIN usage.series s USING (series_id) JOIN usage.scope c USING (scope_id)
     JOIN usage.entity w ON w.entity_id = c.workspace_id JOIN usage.entity e ON e.entity_id = s.entity_id
     WHERE r.traces > 0`,
  );
  const loaded = await sql<{ scope: string; from: Date; to: Date }>(
    `SELECT ${scope}, v.period_start AS from, v.period_end AS to
     FROM usage.coverage v JOIN usage.scope c USING (scope_id) JOIN usage.entity w ON w.entity_id = c.workspace_id`,
  );
  const lines = rows.map(({ scope, at, line }) => {
    return [`${scope} ${at.toISOString()} ${line}`, { scope, at: at.getTime() }] as const;
  });
  return {
    lines: new Map(lines),
    isLoaded: (scope, at) =>
      loaded.some((one) => one.scope === scope && at >= one.from.getTime() && at < one.to.getTime()),
  };
}

async function nightOf(bench: Bench, kind: Kind) {
  const said: string[] = [];
  const settings = { meters: [...USED[kind]] };
  const work = async (name: string, does: () => Promise<readonly string[]>) => {
    const found = await does().catch((error: Error) => [`ends: ${error.message}`]);
    said.push(...found.map((one) => `${name}: ${one}`));
  };
  await work("sync", async () => (await bench.sync({ settings })).run.failures.map(({ message }) => message));
  await work("reconcile", async () => {
    const { failures, differences, unverified } = await bench.reconcile({}, { settings });
    const counts = [...(differences.length > 0 ? [`${differences.length} differences`] : [])];
    return [...failures.map(({ message }) => message), ...counts, ...(unverified > 0 ? ["unverified"] : [])];
  });
  await work("bill", async () => {
    const { provider, parts, failed } = await readBill(await bench.open({ settings }), {
      reach: "month",
      isPatient: false,
    });
    const totals = provider?.months.flatMap((one) => one.totals).filter(({ meter }) => meter === "traces");
    return [
      ...[...failed, ...(provider?.failed ?? [])].map(({ message }) => message),
      `names ${parts.names?.read}`,
      ...new Set(totals?.map(({ outcome, workspaceId }) => `${outcome} ${workspaceId}`)),
    ];
  });
  const states = await bench.sql<{ line: string }>(
    `SELECT concat('meter ', meter, ': ', evidence) AS line FROM usage.source_meter WHERE state <> 'counted'
     UNION ALL SELECT concat('failure: ', code, ' ', message) FROM usage.failure`,
  );
  const logged = bench.logs.filter(({ level }) => Number(level) >= 40).map(({ msg }) => `log: ${msg}`);
  return {
    failed: said.filter((one) => !one.startsWith("bill: ") || one.includes("GET ")),
    said: [...said, ...states.map(({ line }) => line), ...logged].join("\n"),
    figures: await figuresOf(bench),
    rows: { ...(await billRows(bench)), all_workspaces: [], engine_limit: [] },
  };
}

const calm = new Map<Kind, ReturnType<typeof nightOf>>();

async function calmNight(kind: Kind) {
  if (!calm.has(kind)) calm.set(kind, nightOf(await benchOf([], kind), kind));
  return calm.get(kind) as ReturnType<typeof nightOf>;
}

async function expectOutcome(names: readonly GuessName[], outcome: Outcome, kind: Kind): Promise<void> {
  const right = await calmNight(kind);
  expect(right.failed).toEqual([]);
  const bench = await benchOf(names, kind);
  const { figures, said, failed, rows } = await nightOf(bench, kind);
  const wrong = [...figures.lines.keys()].filter((line) => !right.figures.lines.has(line));
  const missing = [...right.figures.lines].filter(([line]) => !figures.lines.has(line));
  const silent = missing.filter(([, { scope, at }]) => figures.isLoaded(scope, at)).map(([line]) => line);
  if (outcome === "right") {
    const lost = missing.map(([line]) => line).slice(0, 20);
    expect({ wrong, lost, failed }).toEqual({ wrong: [], lost: [], failed: [] });
    expect(rows).toEqual(right.rows);
    return;
  }
  if (outcome === "later") {
    expect({ wrong, silent }).toEqual({ wrong: [], silent: [] });
    expect(missing.length).toBeGreaterThan(0);
    expect(missing.filter(([, { at }]) => at < TODAY)).toEqual([]);
    return;
  }
  const isAllowed = !(outcome instanceof RegExp);
  const { source } = isAllowed ? outcome.wrong : outcome;
  expect(said).toMatch(new RegExp(source.replace("WORKSPACE", workspaceAt(bench.standin, 1).id)));
  if (isAllowed) expect(wrong.length + silent.length).toBeGreaterThan(0);
  else expect({ wrong, silent }).toEqual({ wrong: [], silent: [] });
}

test.each(guessNames)("figures are right or what is missing is said, without the guess %s", async (name) => {
  await expectOutcome([name], guessOf(name).outcome, kindOf(name));
});

describe("without several guesses at once", () => {
  const harmless = guessNames.filter((name) => {
    // Without a list too, nothing would name a workspace, and the source is refused.
    return guessOf(name).outcome === "right" && kindOf(name) === "days" && name !== "unnamed-workspaces";
  });

  test("that do no harm, all figures are right", () => expectOutcome(harmless, "right", "days"));

  test("that do harm, no figure is wrong", async () => {
    await expectOutcome(guessNames, /sync/, "days");
  });
});

test("docs/platform.md has a row for each guess, and no other", () => {
  const page = readFileSync(new URL("../../docs/platform.md", import.meta.url), "utf8");
  const [, section = ""] = page.split("\n## Guesses\n");
  const rows = [...section.matchAll(/^\| .* \|$/gm)].map(([row]) => row);
  const named = rows.flatMap((row) =>
    [...(row.split("|").at(-2) ?? "").matchAll(/`([a-z0-9-]+)`/g)].map(([, name = ""]) => name),
  );
  expect(named.sort()).toEqual([...guessNames].sort());
});
