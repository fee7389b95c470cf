import { expect, test } from "vitest";
import { shortDays } from "../../../src/core/domain/months/month.ts";
import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { workMessage } from "../../../src/core/pipeline/extract/work-task.ts";
import { finishBackfills, listBackfills } from "../../../src/core/store/work/backfills.ts";
import { claimTask, endTask, takeTasksToQueue } from "../../../src/core/store/work/tasks.ts";
import { listActions } from "../../support/actions.ts";
import { type Fields, numberIn } from "../../support/dom.ts";
import { type PagesBench, setupPages, setupViewer } from "../../support/pages.ts";
import { setup } from "../../support/source.ts";

/** Backfills through the pages, as a browser without JavaScript uses them. */

type Services = NonNullable<Parameters<typeof setupPages>[1]>["services"];

async function setupBackfills({ days, services = {} }: { days?: number; services?: Services } = {}) {
  const bench = await setup({ workspaces: [0], ...(days && { days }) });
  const source = await bench.open();
  const environment = { USAGE_DATA_START: dayOf(bench.dataStart) };
  const pages = await setupPages(bench, { services, environment });
  const address = (days: number) =>
    `/backfills/new?from=${dayOf(bench.dataStart)}&to=${dayOf(bench.dataStart + days * DAY_MS)}`;
  const take = () =>
    bench.store.transaction(({ db }) => takeTasksToQueue(db, { sourceId: source.sourceId, most: 1000 }));
  const workAll = async () => {
    for (let messages = await take(); messages.length > 0; messages = await take()) {
      for (const message of messages)
        await workMessage({ ...source, attempts: 1 }, { ...message, isLastAttempt: true });
    }
    await finishBackfills(bench.store);
  };
  const failAll = async () => {
    for (const message of await take()) {
      const task = await claimTask(bench.store.db, message);
      expect(task).toBeDefined();
      await endTask(bench.store.db, {
        task: task as NonNullable<typeof task>,
        state: "failed",
        code: "server_error",
        message: "responded with <b>500</b>",
      });
    }
    await finishBackfills(bench.store);
  };
  return {
    bench,
    pages,
    address,
    requested: address(3),
    workAll,
    failAll,
    all: () => listBackfills(bench.store.db),
  };
}

const START = /^Start this load/;

/** The form that starts what the page at an address previews. */
async function startForm(pages: PagesBench, path: string): Promise<Fields> {
  const { _csrf, ...fields } = (await pages.read(path)).form(START);
  return fields;
}

async function start(pages: PagesBench, path: string, fields?: Fields) {
  const { status, headers } = await pages.post("/backfills/new", fields ?? (await startForm(pages, path)), {
    from: path,
  });
  return [status, headers.location];
}

test("a form that makes no sense keeps its values and says why; nothing is started by a look", async () => {
  const { pages, all } = await setupBackfills();
  const workspace = "workspace=11111111-1111-1111-1111-111111111111";
  for (const [query, says] of [
    ["from=2026-03-05", "To is missing"],
    ["from=2025-01-01&to=2025-02-01", "data start"],
    ["from=2090-01-01&to=2090-02-01", "lies in the future"],
    ["from=x&to=2026-03-01", "From: x cannot be used"],
    ["from=2026-03-01&to=2026-04-01&stride=minute", "Stride minute"],
    ["from=2026-03-01&to=2026-04-01&group_by=%3Cscript%3E", "Dimension <script>"],
    ["from=2026-03-01&to=2026-04-01&source=other", "Source other"],
    [`from=2026-03-01&to=2090-04-01&${workspace}`, "Workspace 11111111"],
  ] as const) {
    const page = await pages.read(`/backfills/new?${query}`);
    expect([query, page.status]).toEqual([query, 400]);
    expect(page.notices.join(), query).toContain(says);
    expect(page.buttons.filter((one) => START.test(one))).toEqual([]);
  }
  const kept = await pages.read("/backfills/new?from=2026-03-05&to=2026-03-01&stride=hour&group_by=user");
  expect(kept.form("Preview")).toMatchObject({ from: "2026-03-05", stride: "hour", group_by: "user" });
  expect(await all()).toEqual([]);
});

test("the same form sent twice starts one backfill, and leads to it both times, also after it has ended", async () => {
  const { bench, pages, requested, workAll, all } = await setupBackfills();
  const fields = await startForm(pages, requested);
  const send = () => start(pages, `${requested}&reprocess=all`, fields);
  expect(await Promise.all([send(), send(), send()])).toEqual(Array(3).fill([303, "/backfills/1"]));
  await workAll();
  expect(await send()).toEqual([303, "/backfills/1"]);
  expect(await all()).toMatchObject([{ state: "done", total: 4, done: 4 }]);
  expect(pages.enqueued.length).toBeGreaterThan(0);
  // Its last day is included, as in the form.
  const days = shortDays({ from: dayOf(bench.dataStart), to: dayOf(bench.dataStart + 3 * DAY_MS) });
  const [row = {}] = (await pages.read("/backfills")).table("Loads");
  expect([row.Load, row.Status, numberIn(row.Progress)]).toEqual([`${days} load 1`, "Done", 4]);
  expect((await pages.read("/backfills/1")).facts.Range).toContain(days);
  // What is not final is asked for again by who looks anew and wants so.
  expect(await start(pages, `${requested}&reprocess=all`)).toEqual([303, "/backfills/2"]);
});

test("a plan that changed since it was shown is not started, and the page offers the new plan", async () => {
  const { pages, address, requested, workAll, all } = await setupBackfills({ days: 10 });
  const week = address(8);
  const fields = await startForm(pages, week);
  // Another person loads the first three days meanwhile. They are final.
  await start(pages, requested);
  await workAll();
  const response = await pages.post("/backfills/new", fields, { from: week });
  expect(response.status).toBe(409);
  expect(await all()).toHaveLength(1);
  expect(await start(pages, week)).toEqual([303, "/backfills/2"]);
  // A digest of its own making starts nothing either.
  const forged = { ...(await startForm(pages, `${week}&reprocess=all`)), digest: "0".repeat(64) };
  expect((await pages.post("/backfills/new", forged, { from: week })).status).toBe(409);
  expect(await all()).toHaveLength(2);
});

const order = (pages: PagesBench, id: number, action: string) =>
  pages.post(`/backfills/${id}/${action}`, {}, { from: `/backfills/${id}` });

test("failed tasks are grouped by their code, and retried once by a button", async () => {
  const { bench, pages, requested, workAll, failAll, all } = await setupBackfills();
  await start(pages, requested);
  await failAll();
  const failed = await pages.read("/backfills/1");
  expect(failed.facts.Failed).toBe("4");
  expect(failed.headings).toContain("server_error: 4");
  expect(failed.text).toContain("responded with <b>500</b>");
  expect(failed.table("Ranges that failed with server_error")).toHaveLength(4);
  // A load that ended with a failure is never done, in no place.
  expect((await pages.read("/backfills")).table("Loads")[0]?.Status).toMatch(/^Failed · 4/);
  const [{ figures } = { figures: -1 }] = await bench.sql<{ figures: number }>(
    `SELECT count(*)::integer AS figures FROM usage.expected_day
     WHERE usage_date >= $1::date AND usage_date < $1::date + 3`,
    [dayOf(bench.dataStart)],
  );
  const result = failed.headings.find((one) => one.startsWith("Result"));
  expect(result?.match(/\d+/g)?.slice(0, 2).map(Number)).toEqual([0, figures]);
  const retried = await Promise.all([order(pages, 1, "retry"), order(pages, 1, "retry")]);
  expect(retried.map(({ status }) => status).sort()).toEqual([303, 409]);
  expect(await all()).toMatchObject([{ state: "running", waiting: 4, failed: 0 }]);
  await workAll();
  expect(await all()).toMatchObject([{ state: "done", total: 4, done: 4, failed: 0 }]);
  const actions = (await listActions(bench.store.db, { most: 20 })).map(({ action }) => action);
  expect(actions.filter((action) => action === "backfill.retry")).toHaveLength(1);
});

test("a paused backfill offers to go on, and a cancelled one shows what was done of it", async () => {
  const { pages, requested, all } = await setupBackfills();
  await start(pages, requested);
  expect((await order(pages, 1, "pause")).status).toBe(303);
  expect((await pages.read("/backfills/1")).buttons).toContain("Resume");
  expect((await order(pages, 1, "resume")).status).toBe(303);
  expect((await order(pages, 1, "cancel")).status).toBe(303);
  expect(await all()).toMatchObject([{ state: "cancelled", done: 0, waiting: 0 }]);
  expect((await pages.read("/backfills")).table("Loads")[0]?.Progress).toMatch(/^0 of 4/);
});

test("a backfill that is held up says why, and starts without Redis all the same", async () => {
  let workers: number | "late" | undefined;
  const lookAtQueues = async () => {
    if (workers === "late") return new Promise<never>(() => {});
    if (workers === undefined) throw new Error("redis is away");
    return { schedulers: 1, sources: new Map([["default", { workers, nextSync: undefined }]]) };
  };
  const { bench, pages, requested } = await setupBackfills({ services: { lookAtQueues } });
  expect(await start(pages, requested)).toEqual([303, "/backfills/1"]);
  const problems = async (path = "/backfills/1") =>
    (await pages.read(path)).notices.filter((one) => one.startsWith("Problem"));
  expect(await problems()).toEqual([expect.stringContaining("redis is away")]);
  expect((await problems("/")).join()).toContain("redis is away");
  // One that is slow is not away.
  workers = "late";
  expect(await problems()).toEqual([]);
  expect((await problems("/")).join()).not.toContain("Redis");
  workers = 0;
  expect(await problems()).toEqual([expect.stringContaining("No worker")]);
  workers = 1;
  expect(await problems()).toEqual([]);
  await bench.sql(
    "UPDATE usage.source SET refused_at = now(), refused_code = 'unauthorized', refused_message = 'wrong <key>'",
  );
  expect(await problems()).toEqual([expect.stringContaining("wrong <key>")]);
});

test("a viewer sees previews and backfills without a form, and is refused where one is sent", async () => {
  const { bench, pages: operator, requested, all } = await setupBackfills();
  const pages = await setupViewer(bench, { environment: { USAGE_DATA_START: dayOf(bench.dataStart) } });
  const page = await pages.read(requested);
  expect([page.status, page.buttons.filter((one) => START.test(one))]).toEqual([200, []]);
  const fields = await startForm(operator, requested);
  expect((await pages.post("/backfills/new", fields, { from: requested })).status).toBe(403);
  expect(await all()).toEqual([]);
});
