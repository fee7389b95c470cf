import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { openStore } from "../../src/core/store/db/database.ts";
import { expectAccessible, expectNoSidewaysScroll } from "../support/browser/checks.ts";
import { inBrowser, type Opened, openPage, type View } from "../support/browser/page.ts";
import { SCREENS } from "../support/browser/screens.ts";
import { openSite, openStory } from "../support/browser/site.ts";
import { setupPages } from "../support/pages.ts";
import { setup } from "../support/source.ts";

/** Screens in the states that they may be in: empty, half loaded, stale, without a server, not permitted. */

inBrowser();

const VIEWER = "viewers-token-4712";
/** With and without scripts, in both colour schemes, narrow and wide. */
const WAYS: readonly View[] = [
  { javascript: true, scheme: "dark", width: 320 },
  { javascript: false, scheme: "light" },
];

async function expectSound(opened: Opened): Promise<void> {
  await expectNoSidewaysScroll(opened);
  await expectAccessible(opened);
}

const mainOf = async ({ page }: Opened) => (await page.textContent("main"))?.replace(/\s+/g, " ") ?? "";

describe("with all that can happen in the database", () => {
  let site: Awaited<ReturnType<typeof openStory>>;
  beforeAll(async () => {
    site = await openStory({
      services: {
        lookAtQueues: async () => {
          throw new Error("connect ECONNREFUSED 127.0.0.1:6379");
        },
      },
    });
  });
  afterAll(() => site?.close());

  test.each(WAYS)("without Redis a page says so and shows what Postgres knows: %o", async (view) => {
    const opened = await openPage(site.url, view);
    await opened.go("/");
    const overview = await mainOf(opened);
    expect(overview).toContain("Redis cannot be read now");
    expect(overview).toMatch(/Proved/);
    await expectSound(opened);
    await opened.go("/backfills/1");
    expect(await mainOf(opened)).toContain(
      "Redis cannot be read now: connect ECONNREFUSED 127.0.0.1:6379. The backfill is stored in Postgres",
    );
    await expectSound(opened);
  });
});

test("a source that is half loaded is called final nowhere, and no gap is a zero", async () => {
  const bench = await setup({ days: 6, workspaces: [0, 1] });
  const { today, dataStart } = bench;
  const days = (start: number, end: number) => ({ stride: "day" as const, range: { start, end } });
  const day = (at: number) => new Date(at).toISOString().slice(0, 10);
  // All of one dimension, and the beginning of another.
  await bench.fetch({ wanted: [days(dataStart, today)], reprocess: "missing", groupings: ["workspace"] });
  const begun = days(dataStart, dataStart + 2 * DAY_MS);
  await bench.fetch({ wanted: [begun], reprocess: "missing", groupings: ["project"] });
  const pages = await setupPages(bench, { environment: { USAGE_DATA_START: day(dataStart) } });
  const range = `from=${day(dataStart)}&to=${day(today)}`;
  const says: [string, RegExp][] = [
    ["/", /No final day yet/],
    [`/coverage?${range}`, /missing/],
    [`/usage?by=workspace&${range}`, /provisional/i],
    [`/usage?by=project&${range}`, /≥/],
    [`/usage?by=user&${range}`, /not loaded|Missing/],
  ];
  for (const view of WAYS) {
    const opened = await openPage(pages.url, view);
    for (const [path, pattern] of says) {
      await opened.go(path);
      const text = await mainOf(opened);
      expect(text, path).toMatch(pattern);
      expect(text, path).not.toMatch(/No gaps|final and proved/i);
      await expectSound(opened);
    }
  }
});

test("with an empty database each screen says what to do first, or that there is nothing of that kind", async () => {
  const site = await openSite("migrated");
  // Before the page, which is left first then.
  onTestFinished(site.close);
  for (const [place, view] of WAYS.entries()) {
    const opened = await openPage(site.url, view);
    for (const { path } of SCREENS.filter((_, n) => n % 2 === place)) {
      const response = await opened.page.goto(path);
      expect([path, [200, 404].includes(response?.status() ?? 0)]).toEqual([path, true]);
      expect((await mainOf(opened)).length).toBeGreaterThan(20);
      await expectNoSidewaysScroll(opened);
    }
    opened.problems.splice(0);
    await opened.go("/");
    await expectSound(opened);
  }
});

test("without Postgres each screen says so and leads on", async () => {
  const away = openStore({ url: "postgresql://nobody:nothing@127.0.0.1:9/none", maxConnections: 1 });
  onTestFinished(away.close);
  const site = await openSite("migrated", { services: { reader: away.db } });
  onTestFinished(site.close);
  for (const [place, view] of WAYS.entries()) {
    const opened = await openPage(site.url, view);
    for (const { path } of SCREENS.filter((_, n) => n % 2 === place)) {
      await opened.go(path, 503);
      expect(await mainOf(opened)).toContain("postgres_unreachable");
    }
    await expectSound(opened);
  }
  expect(JSON.stringify(site.logs)).not.toContain("nothing@");
});

test.each(WAYS)("who only looks gets no form and no address of a user: %o", async (view) => {
  const environment = { USAGE_WEB_TOKEN: "operators-token-4711", USAGE_WEB_READ_TOKEN: VIEWER };
  const site = await openStory({ environment });
  onTestFinished(site.close);
  const opened = await openPage(site.url, view);
  await opened.go("/usage?by=user", 200);
  expect(new URL(opened.page.url()).pathname).toBe("/login");
  await expectSound(opened);
  await opened.page.fill("input[name=token]", VIEWER);
  await opened.page.keyboard.press("Enter");
  await opened.page.waitForURL(/\/usage/);
  for (const { path } of SCREENS.filter((_, n) => n % 2 === WAYS.indexOf(view))) {
    // Who may not import an invoice needs no page for it.
    await opened.go(site.at(path), path === "/invoices/new" ? 403 : 200);
    const text = await opened.page.textContent("body");
    expect(text, path).not.toMatch(/@[a-z\\\d]*[xä]mple/);
    const actions = await opened.page.evaluate(
      "[...document.querySelectorAll('form[method=post]')].map((form) => form.getAttribute('action'))",
    );
    expect([path, actions]).toEqual([path, ["/logout"]]);
  }
});
