import { request } from "undici";
import { expect, test } from "vitest";
import { daysText } from "../../../src/domain/months/month.ts";
import { dayOf } from "../../../src/domain/time/days.ts";
import { DAY_MS } from "../../../src/domain/time/stride.ts";
import { workMessage } from "../../../src/pipeline/extract/work-task.ts";
import { finishBackfills, listBackfills } from "../../../src/store/work/backfills.ts";
import { claimTask, endTask, takeTasksToQueue } from "../../../src/store/work/tasks.ts";
import { listActions } from "../../support/actions.ts";
import { setupPages, setupViewer, startBackfill, startFields, textOf } from "../../support/pages.ts";
import { type Bench, setup } from "../../support/source.ts";

/** Backfills through the pages, as a browser without JavaScript uses them. */

async function setupBackfills(
  options: Parameters<typeof setup>[0] = { workspaces: [0] },
  services: NonNullable<Parameters<typeof setupPages>[1]>["services"] = {},
) {
  const bench = await setup(options);
  const source = await bench.open();
  const pages = await setupPages(bench, {
    services,
    environment: { USAGE_DATA_START: dayOf(bench.dataStart) },
  });
  const from = dayOf(bench.dataStart);
  const asked = `/backfills/new?from=${from}&to=${dayOf(bench.dataStart + 3 * DAY_MS)}`;
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
      if (task === undefined) continue;
      await endTask(bench.store.db, {
        task,
        state: "failed",
        code: "server_error",
        message: "answered <b>500</b>",
      });
    }
    await finishBackfills(bench.store);
  };
  return { bench, pages, asked, workAll, failAll };
}

const backfills = (bench: Bench) => listBackfills(bench.store.db);

test("a form that makes no sense keeps its values and says why; nothing is started by a look", async () => {
  const { bench, pages } = await setupBackfills();
  const refused = async (query: string, says: RegExp, status = 400) => {
    const page = await pages.get(`/backfills/new?${query}`);
    expect([query, page.status]).toEqual([query, status]);
    expect(page.text).toMatch(says);
    expect(page.text).not.toContain('action="/backfills/new" method="post"');
    return page.text;
  };
  const kept = await refused(
    "from=2026-03-05&to=2026-03-01&stride=hour&group_by=user",
    /which leaves nothing/,
  );
  expect(kept).toMatch(/name="from" value="2026-03-05"/);
  expect(kept).toMatch(/value="user" checked/);
  expect(kept).toMatch(/value="hour" selected/);
  await refused("from=2026-03-05", /To is missing/);
  await refused("from=2025-01-01&to=2025-02-01", /ends before the source&#39;s data start/);
  await refused("from=2090-01-01&to=2090-02-01", /lies in the future/);
  await refused("from=x&to=2026-03-01", /From: x cannot be used/);
  await refused("from=2026-03-01&to=2026-04-01&stride=minute", /Stride minute is none of/);
  await refused("from=2026-03-01&to=2026-04-01&group_by=%3Cscript%3E", /Dimension &lt;script&gt; is none of/);
  await refused("from=2026-03-01&to=2026-04-01&source=other", /Source other is not configured/);
  const workspace = "workspace=11111111-1111-1111-1111-111111111111";
  await refused(`from=2026-03-01&to=2090-04-01&${workspace}`, /Workspace 11111111\S+ is not known/);
  expect((await pages.get("/backfills/new")).status).toBe(200);
  for (const unknown of ["/backfills/4711", "/backfills/0", "/backfills/x", "/backfills/99999999999"]) {
    expect([unknown, (await pages.get(unknown)).status]).toEqual([unknown, 404]);
  }
  expect((await pages.get("/backfills")).text).toContain("There is no backfill");
  expect(await backfills(bench)).toEqual([]);
});

test("the same form sent twice starts one backfill, and leads to it both times, also after it has ended", async () => {
  const { bench, pages, asked, workAll } = await setupBackfills();
  const { text } = await pages.get(asked);
  // Its last day is included, as in the form.
  const days = daysText({ from: dayOf(bench.dataStart), to: dayOf(bench.dataStart + 3 * DAY_MS) });
  expect(text).toContain(`<th scope="row">${days}</th>`);
  expect(textOf(text)).toMatch(/Range Per workspace project user API key All/);
  const send = () => pages.post("/backfills/new", startFields(text), { from: `${asked}&reprocess=all` });
  const sent = await Promise.all([send(), send(), send()]);
  expect(sent.map(({ status, headers }) => [status, headers.location])).toEqual(
    Array(3).fill([303, "/backfills/1"]),
  );
  await workAll();
  expect((await send()).headers.location).toBe("/backfills/1");
  for (const path of ["/backfills", "/backfills/1"]) {
    expect((await pages.get(path)).text, path).toContain(`<span class="range">${days}</span>`);
  }
  expect(await backfills(bench)).toMatchObject([{ state: "done", total: 4, done: 4 }]);
  expect(pages.enqueued.length).toBeGreaterThan(0);
  // What is not final is asked for again by who looks anew and wants so.
  expect((await startBackfill(pages, `${asked}&reprocess=all`)).headers.location).toBe("/backfills/2");
});

test("a plan that changed since it was shown is not started: the page shows what changed, and offers the new plan", async () => {
  const { bench, pages, asked, workAll } = await setupBackfills({ workspaces: [0], days: 10 });
  const week = asked.replace(/to=.*/, `to=${dayOf(bench.dataStart + 8 * DAY_MS)}`);
  const { text } = await pages.get(week);
  // Another person loads the first three days meanwhile. They are final.
  await startBackfill(pages, asked);
  await workAll();
  const answer = await pages.post("/backfills/new", startFields(text), { from: week });
  expect(answer.status).toBe(409);
  expect(answer.text).toContain("The plan has changed since it was shown, so nothing was started.");
  expect(answer.text).toContain("Windows that came: 1");
  expect(answer.text).toContain("Windows that went: 1");
  expect(await backfills(bench)).toHaveLength(1);
  const again = await pages.post("/backfills/new", startFields(answer.text), { from: week });
  expect([again.status, again.headers.location]).toEqual([303, "/backfills/2"]);
  // A digest of its own making starts nothing either.
  const forged = {
    ...startFields((await pages.get(`${week}&reprocess=all`)).text),
    digest: "0".repeat(64),
    windows: "<script>",
  };
  const refused = await pages.post("/backfills/new", forged, { from: week });
  expect([refused.status, refused.text.includes("too long to show")]).toEqual([409, true]);
  expect(await backfills(bench)).toHaveLength(2);
});

test("failed tasks are grouped with what to do, retried by a button, and steered in any order without a lost one", async () => {
  const { bench, pages, asked, workAll, failAll } = await setupBackfills();
  await startBackfill(pages, asked);
  const order = (action: string) => pages.post(`/backfills/1/${action}`, {}, { from: "/backfills/1" });
  expect((await order("pause")).status).toBe(303);
  const paused = (await pages.get("/backfills/1")).text;
  expect(textOf((await pages.get("/timeline?kind=backfill")).text)).toMatch(/run \d+: paused, 4 left As/);
  expect(paused).toContain("It is paused");
  expect(paused).toMatch(/formaction="\/backfills\/1\/resume"/);
  expect((await order("resume")).status).toBe(303);
  await failAll();
  const failed = (await pages.get("/backfills/1")).text;
  expect(failed).toContain("done, 4 failed");
  expect(failed).toMatch(/<code>server_error<\/code>: <span class="number">4<\/span>/);
  expect(failed).toContain("answered &lt;b&gt;500&lt;/b&gt;");
  expect(failed).toContain("To ask now, retry.");
  expect(failed).toContain("Not all of it is loaded");
  expect(failed).toContain("backfill retry 1");

  const retried = await Promise.all([order("retry"), order("retry")]);
  expect(retried.map(({ status }) => status).sort()).toEqual([303, 409]);
  expect(retried.find(({ status }) => status === 409)?.text).toContain("has no failed fetch task");
  expect(await backfills(bench)).toMatchObject([{ state: "running", waiting: 4, failed: 0 }]);
  await workAll();
  expect(await backfills(bench)).toMatchObject([{ state: "done", total: 4, done: 4, failed: 0 }]);
  expect((await pages.get("/backfills/1")).text).toContain("All of it is loaded");

  await startBackfill(pages, `${asked}&reprocess=all`);
  await failAll();
  const [cancelled, again] = await Promise.all([
    pages.post("/backfills/2/retry", {}, { from: "/backfills/2" }),
    pages.post("/backfills/2/cancel", {}, { from: "/backfills/2" }),
  ]);
  const [second] = await backfills(bench);
  // A finished one cannot be cancelled: only where the retry came first, it was.
  if (again.status === 303)
    expect(second).toMatchObject({ state: "cancelled", waiting: 0, failed: 0, total: 4 });
  else expect(second).toMatchObject({ state: "running", waiting: 4, total: 4 });
  expect(cancelled.status).toBe(303);
  const about = (await listActions(bench.store.db, { most: 20 })).map(({ action }) => action);
  expect(about.filter((action) => action === "backfill.retry")).toHaveLength(2);
});

test("a backfill that is held up says why, starts without Redis all the same, and is followed by its page", async () => {
  let workers: number | "late" | undefined;
  const lookAtQueues = async () => {
    if (workers === "late") return new Promise<never>(() => {});
    if (workers === undefined) throw new Error("redis is away");
    return { schedulers: 1, sources: new Map([["default", { workers, nextSync: undefined }]]) };
  };
  const { bench, pages, asked, workAll } = await setupBackfills({ workspaces: [0] }, { lookAtQueues });
  expect((await startBackfill(pages, asked)).headers.location).toBe("/backfills/1");
  const shown = async () => (await pages.get("/backfills/1")).text;
  expect(await shown()).toContain("goes on by itself when Redis is back");
  expect((await pages.get("/")).text).toMatch(
    /class="notice bad"[\s\S]*Redis cannot be read now: redis is away\./,
  );
  // One that is slow is not away.
  workers = "late";
  expect(await shown()).not.toMatch(/class="notice bad"|Redis/);
  const overview = (await pages.get("/")).text;
  expect(overview).toContain("Redis has not answered within a second.");
  expect(overview).not.toMatch(/class="notice bad"|Redis does not answer/);
  workers = 0;
  expect(await shown()).toContain("No worker takes its fetch tasks now.");
  workers = 1;
  expect(await shown()).not.toMatch(/class="notice bad"/);
  await bench.sql(
    "UPDATE usage.source SET refused_at = now(), refused_code = 'unauthorized', refused_message = 'wrong <key>'",
  );
  expect(await shown()).toContain(
    "The platform refuses the key, so nothing of it is fetched: wrong &lt;key&gt;",
  );
  await bench.sql("UPDATE usage.source SET refused_at = NULL, refused_code = NULL, refused_message = NULL");

  const stream = await request(`${pages.url}/backfills/1/live`, { headers: { accept: "text/event-stream" } });
  const seen: string[] = [];
  await workAll();
  for await (const chunk of stream.body) {
    seen.push(String(chunk));
    if (seen.join("").includes("data-live-ended")) break;
  }
  expect(seen.join("")).toContain("All of it is loaded");
  // Each says as of when it is.
  expect(seen.join("")).toMatch(/^id: \d{13}$/m);
});

test("a viewer sees previews and backfills without a form, and is refused where one is sent", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.open();
  const pages = await setupViewer(bench, { environment: { USAGE_DATA_START: dayOf(bench.dataStart) } });
  const asked = `/backfills/new?from=${dayOf(bench.dataStart)}&to=${dayOf(bench.today)}`;
  const page = await pages.get(asked);
  expect([page.status, page.text.includes("Operators can start it.")]).toEqual([200, true]);
  expect(page.text).not.toContain("_csrf");
  expect((await pages.post("/backfills/new", startFields(page.text), { from: asked })).status).toBe(403);
  expect(await backfills(bench)).toEqual([]);
});

test("a cancelled backfill shows what was done of it, not that it is over", async () => {
  const { bench, pages, asked } = await setupBackfills();
  await startBackfill(pages, asked);
  expect((await pages.post("/backfills/1/cancel", {}, { from: "/backfills/1" })).status).toBe(303);
  expect(await backfills(bench)).toMatchObject([{ state: "cancelled", done: 0, waiting: 0 }]);
  for (const path of ["/backfills", "/backfills/1"]) {
    const { text } = await pages.get(path);
    expect([path, /<span class="number">(\d+) %/.exec(text)?.[1]]).toEqual([path, "0"]);
  }
});
