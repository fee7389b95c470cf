import { DateTime } from "luxon";
import { monthAt } from "../../src/core/domain/months/month.ts";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { planSource } from "../../src/core/pipeline/sync/plan.ts";
import { openStore } from "../../src/core/store/db/database.ts";
import { createBackfill } from "../../src/core/store/work/backfills.ts";
import { closePeriod } from "../../src/features/close/close-period.store.ts";
import { type OwnerFile, WHOLE_SHARE } from "../../src/features/owners/owner.ts";
import { replaceOwners } from "../../src/features/owners/owners.store.ts";
import { ensureTemplate } from "./database.ts";
import { HOSTILE } from "./hostile.ts";
import { farFromTheNextHour, openBench, senderOn } from "./source.ts";
import { migratePublished } from "./store.ts";

const ACTOR = { name: HOSTILE.person, role: "operator", via: "page" } as const;

function calendar(today: number) {
  const month = DateTime.fromMillis(today - 4 * DAY_MS, { zone: "utc" })
    .startOf("month")
    .minus({ months: 1 });
  const dataStart = month.toMillis();
  return {
    month: { start: dataStart, end: month.plus({ months: 1 }).toMillis() },
    days: (today - dataStart) / DAY_MS,
  };
}

const instant = (at: number) => new Date(at).toISOString();
export const iso = (at: number) => instant(at).slice(0, 10);

export function storyOf(now: number) {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const { month, days } = calendar(today);
  const oneDay = (start: number) => ({ start, end: start + DAY_MS });
  return {
    today,
    days,
    month,
    restated: oneDay(month.start + 9 * DAY_MS),
    gap: { start: month.end, end: month.end + 2 * DAY_MS },
    failed: oneDay(today - 6 * DAY_MS),
    /** The export says otherwise. */
    differing: oneDay(today - 4 * DAY_MS),
  };
}

export async function ensureStory(): Promise<void> {
  const now = await farFromTheNextHour(20_000);
  await ensureTemplate("story", async (url) => {
    const store = openStore({ url });
    try {
      await migratePublished(store);
      await tell(store, url, now);
    } finally {
      await store.close();
    }
  });
}

function ownersOf(workspace: string): OwnerFile {
  const none = { source: null, of: null, name: null, tag: null, from: null, to: null };
  const shares = [{ owner: HOSTILE.person, costCenter: "CC-1", share: WHOLE_SHARE }];
  return {
    content: "rules: []",
    divideBy: "project",
    budgets: [
      { line: 1, source: null, per: "month", of: null, currency: null, amount: "1000000000", warnAt: [100] },
    ],
    routes: [
      {
        line: 1,
        name: "one",
        type: "slack",
        setting: "USAGE_ROUTE_ONE",
        sender: null,
        recipients: [],
        owners: [HOSTILE.person],
        kinds: ["budget"],
        severities: null,
      },
    ],
    rules: [{ ...none, line: 1, workspace, shares }],
  };
}

async function tell(store: ReturnType<typeof openStore>, url: string, now: number): Promise<void> {
  const story = storyOf(now);
  const { today, days, month, gap, failed } = story;
  const scale = 0.6;
  const bench = await openBench({
    store,
    url,
    now,
    days,
    workspaces: [0, 1],
    hourlyForMs: 3 * DAY_MS,
    standin: { scale },
  });
  try {
    const { standin } = bench;
    const { workspaces, streams } = standin.organisation;
    const [first, second] = workspaces;
    if (first === undefined || second === undefined) throw new Error("the stand-in has no workspaces");
    const own = streams.filter(
      ({ project: { workspace }, begins, ends }) =>
        (workspace === first || workspace === second) &&
        begins * DAY_MS <= month.start &&
        ends === Number.POSITIVE_INFINITY,
    );
    const rename = <T extends object>(
      all: readonly (T | null)[],
      field: keyof T,
      names: readonly string[],
    ) => {
      const things = [...new Set(all)].filter((one) => one !== null);
      for (const [index, name] of names.entries()) Object.assign(things[index] ?? {}, { [field]: name });
    };
    rename([first, second], "name", HOSTILE.workspaces);
    rename(
      own.map(({ project }) => project),
      "name",
      HOSTILE.projects,
    );
    rename(
      own.map(({ user }) => user),
      "email",
      HOSTILE.emails,
    );
    rename(
      own.map(({ key }) => key),
      "shortKey",
      HOSTILE.keys,
    );

    const load = (start: number, end: number, reprocess: "missing" | "all" = "missing") =>
      bench.fetch({ wanted: [{ stride: "day", range: { start, end } }], reprocess });
    await load(month.start, month.end);
    await bench.reconcile({ range: month });
    const [source] = await bench.sql<{ source_id: number }>("SELECT source_id FROM usage.source");
    const sourceId = source?.source_id ?? 0;
    await store.transaction(({ db }) => replaceOwners(db, ownersOf(first.id)));
    const closed = await closePeriod(store, {
      sourceId,
      period: monthAt(month.start),
      settleAfterMs: 3 * DAY_MS,
      withoutCosts: true,
      by: ACTOR,
    });
    if (closed.state !== "closed") throw new Error(`the month is ${JSON.stringify(closed)}`);
    standin.ledger.change(senderOn(standin, 0, story.restated.start), 25);
    await load(story.restated.start, story.restated.end, "all");

    standin.faults.set({
      script: [
        {
          fault: { kind: "status", status: 422 },
          times: 1000,
          match: { during: { from: instant(failed.start), to: instant(failed.end) } },
        },
      ],
    });
    await load(gap.end, now);
    const hours = { start: today - 2 * DAY_MS, end: Math.floor(now / HOUR_MS) * HOUR_MS };
    await bench.fetch({ wanted: [{ stride: "hour", range: hours }], reprocess: "missing" });

    const { start: differing } = story.differing;
    standin.discrepancies.push({
      format: "csv",
      stride: "day",
      delta: 7,
      cell: senderOn(standin, 1, differing),
    });
    await bench.reconcile({ range: { start: today - 5 * DAY_MS, end: today - 3 * DAY_MS } });

    const opened = await bench.open();
    const tasks = await planSource(opened, { wanted: [{ stride: "day", range: gap }], reprocess: "missing" });
    await createBackfill(store, {
      meter: "traces",
      sourceId,
      range: gap,
      stride: "day",
      reprocess: "missing",
      tasks,
      groupings: ["workspace", "project", "user", "api_key"],
      workspaceIds: [first.id, second.id],
      by: ACTOR,
    });
  } finally {
    await bench.close();
  }
}
