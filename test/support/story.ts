import { DateTime } from "luxon";
import { DAY_MS, HOUR_MS } from "../../src/domain/time/stride.ts";
import { planSource } from "../../src/pipeline/sync/plan.ts";
import { openStore } from "../../src/store/db/database.ts";
import { migrate } from "../../src/store/db/migrate.ts";
import { closeMonth } from "../../src/store/report/month-close.ts";
import { createBackfill } from "../../src/store/work/backfills.ts";
import { ensureTemplate } from "./database.ts";
import { farFromTheNextHour, openBench, senderOn } from "./source.ts";

/** Names as no platform should give them. The pages show each as text. */
export const HOSTILE = {
  workspace: `<script>alert(1)</script>`,
  projects: [
    `"><img src=x onerror=alert(1)>`,
    `' onfocus='alert(1)' autofocus='`,
    "\u202Eevil\u202C \u2066isolated\u2069 \u200Fמפתח",
    `long ${"x".repeat(995)}`,
    "",
    "</title></script></svg><svg onload=alert(1)>",
    "line\nbreak\r\nand\u0000\u001b[31mcontrols",
  ],
  email: `"<b>bold</b>"@example.com`,
} as const;

const ACTOR = { name: "ana", role: "operator", via: "page" } as const;

/** The days of the story, which depend on today alone. */
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
/** The day of an instant. */
export const iso = (at: number) => instant(at).slice(0, 10);

/** The story of today, without its database. */
export function storyOf(now: number) {
  const today = Math.floor(now / DAY_MS) * DAY_MS;
  const { month, days } = calendar(today);
  const oneDay = (start: number) => ({ start, end: start + DAY_MS });
  return {
    today,
    days,
    /** Closed, and restated afterwards. */
    month,
    restated: oneDay(month.start + 9 * DAY_MS),
    /** Not loaded, and not asked for. */
    gap: { start: month.end, end: month.end + 2 * DAY_MS },
    /** The platform refuses it. */
    failed: oneDay(today - 6 * DAY_MS),
    /** The export says otherwise. */
    differing: oneDay(today - 4 * DAY_MS),
  };
}

/**
 * Builds the template database `story` (database.ts) once in a run: a month that is closed and restated, a gap, a failure, a
 * difference from the export, a backfill that waits, and hostile names. Its stand-in is gone afterwards.
 */
export async function ensureStory(): Promise<void> {
  const now = await farFromTheNextHour(20_000);
  await ensureTemplate("story", async (url) => {
    const store = openStore({ url });
    try {
      await migrate(store);
      await tell(store, url, now);
    } finally {
      await store.close();
    }
  });
}

async function tell(store: ReturnType<typeof openStore>, url: string, now: number): Promise<void> {
  const story = storyOf(now);
  const { today, days, month, gap, failed } = story;
  const scale = 0.3;
  const bench = await openBench({
    ...{ store, url, now, days, workspaces: [0, 1], hourlyForMs: 3 * DAY_MS, standin: { scale } },
  });
  try {
    const { standin } = bench;
    const { workspaces, projects, users } = standin.organisation;
    const [first, second] = workspaces;
    if (first === undefined || second === undefined) throw new Error("the stand-in has no workspaces");
    first.name = HOSTILE.workspace;
    const own = projects.filter(({ workspace }) => workspace === first || workspace === second);
    for (const [index, project] of own.entries()) project.name = HOSTILE.projects[index] ?? project.name;
    for (const user of users.slice(0, 3)) user.email = HOSTILE.email;

    const load = (start: number, end: number, reprocess: "missing" | "all" = "missing") =>
      bench.fetch({ wanted: [{ stride: "day", range: { start, end } }], reprocess });
    await load(month.start, month.end);
    await bench.reconcile({ range: month });
    const [source] = await bench.sql<{ source_id: number }>("SELECT source_id FROM usage.source");
    const sourceId = source?.source_id ?? 0;
    const closed = await closeMonth(store, {
      ...{ sourceId, monthStart: iso(month.start), settleAfterMs: 3 * DAY_MS, by: ACTOR },
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
      ...{ format: "csv", stride: "day", delta: 7, cell: senderOn(standin, 1, differing) },
    });
    await bench.reconcile({ range: { start: today - 5 * DAY_MS, end: today - 3 * DAY_MS } });

    const opened = await bench.open();
    const slices = await planSource(opened, {
      wanted: [{ stride: "day", range: gap }],
      reprocess: "missing",
    });
    await createBackfill(store, {
      meter: "traces",
      ...{ sourceId, range: gap, stride: "day", reprocess: "missing", slices },
      groupings: ["workspace", "project", "user", "api_key"],
      workspaceIds: [first.id, second.id],
      by: ACTOR,
    });
  } finally {
    await bench.close();
  }
}
