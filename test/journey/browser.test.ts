import type { Locator, Page } from "playwright-core";
import { expect, test } from "vitest";
import { addDays } from "../../src/core/domain/time/days.ts";
import { listActions } from "../support/actions.ts";
import { expectAccessible } from "../support/browser/checks.ts";
import { inBrowser, openPage } from "../support/browser/page.ts";
import { poll } from "../support/poll.ts";
import { startProxy } from "../support/proxy.ts";
import { daysAgo, type ServiceBench, setupService } from "../support/service.ts";

inBrowser();

const DAYS = 4;
const OPERATOR = "operators-token-4714";

/** Presses Tab until it is there: at most once around the page. */
async function tabTo(page: Page, target: Locator): Promise<void> {
  for (let press = 0; press < 300; press++) {
    if ((await target.and(page.locator(":focus")).count()) === 1) return;
    await page.keyboard.press("Tab");
  }
  throw new Error(`Tab does not lead to ${target}.`);
}

async function create(page: Page, target: Locator, leadsTo: RegExp): Promise<void> {
  await tabTo(page, target);
  await page.keyboard.press("Enter");
  await page.waitForURL(leadsTo);
}

/** A service whose days were loaded and are lost, but for those that are kept by hours. */
async function serveWithGap(bench: ServiceBench, environment: Record<string, string>): Promise<string> {
  const service = await bench.serve({ environment });
  await bench.loaded();
  await bench.store.transaction(({ client }) =>
    client.query(`DELETE FROM usage.dated_record;
      DELETE FROM usage.coverage c USING usage.trace_scope s WHERE s.scope_id = c.scope_id AND s.stride = 'day'`),
  );
  const [, url = ""] = /health and metrics on (\S+);/.exec(service.said.stderr) ?? [];
  return url;
}

test("a gap is found, selected, previewed, started and loaded by keyboard alone, and its page follows it", async () => {
  const bench = await setupService({ days: DAYS, workspaces: 1, environment: { USAGE_SYNC_EVERY: "PT10M" } });
  // Responses after the first two wait until the test has seen those come.
  let open = () => {};
  const gate = new Promise<void>((resolve) => {
    open = resolve;
  });
  const proxy = await startProxy(bench.standin.url, () => undefined);
  const url = await serveWithGap(bench, { USAGE_BASE_URL: proxy.url, USAGE_WEB_TOKEN: OPERATOR });
  let requested = 0;
  proxy.rewrite = async ({ url: { pathname } }) => {
    if (pathname.endsWith("/granular-usage") && ++requested > 2) await gate;
    return undefined;
  };
  const opened = await openPage(url, { scheme: "dark" });
  const { page } = opened;
  await opened.go("/login");
  await page.getByLabel("Token").fill(OPERATOR);
  await page.keyboard.press("Enter");
  await page.waitForURL((at) => at.pathname === "/");

  await create(page, page.getByRole("link", { name: /^Data health/ }), /\/coverage\?/);
  const first = daysAgo(DAYS);
  const missing = await page.locator(".calendar td.missing a").count();
  expect(missing).toBeGreaterThanOrEqual(2);
  const last = addDays(first, missing - 1);
  await create(page, page.getByRole("link", { name: "Load gaps (1)" }), /\/backfills\/new\?/);

  expect(await page.inputValue("input[name=from]")).toBe(first);
  expect(await page.inputValue("input[name=until]")).toBe(last);
  expect(await page.textContent("section[aria-labelledby=preview]")).toMatch(/Requests\s*4 \(/);
  await create(page, page.getByRole("button", { name: "Start this load: 4 requests" }), /\/backfills\/1$/);

  await page.evaluate("window.stayed = true");
  const bar = page.locator("[data-live] progress");
  const text = async () => (await page.textContent("[data-live]"))?.replace(/\s+/g, " ") ?? "";
  await poll(async () => (await bar.getAttribute("value")) === "2", { deadlineMs: 60_000, everyMs: 100 });
  expect(await text()).toMatch(/Running 2 of 4/);
  await tabTo(page, page.locator("#order-pause"));
  const before = await page.textContent("[data-as-of] time");
  await poll(async () => (await page.textContent("[data-as-of] time")) !== before, { everyMs: 100 });
  expect(await page.evaluate("document.activeElement.id")).toBe("order-pause");
  open();
  await poll(async () => (await text()).includes("Result:"), { deadlineMs: 60_000, everyMs: 100 });
  expect(await text()).toMatch(/Done 4 of 4/);
  expect(await text()).toMatch(/Result: 4 of 12 daily figures final; 8 provisional [^;]*$/);
  expect(await page.evaluate("window.stayed")).toBe(true);
  await expectAccessible(opened);

  await create(page, page.getByRole("link", { name: /^Data health/ }), /\/coverage\?/);
  expect(await page.locator("table[data-grid] td.missing").count()).toBe(0);
  expect(await listActions(bench.store.db, { most: 9 })).toMatchObject([
    { action: "backfill.start", via: "page" },
  ]);

  const board = await openPage(url);
  await board.page.setExtraHTTPHeaders({ authorization: `Basic ${btoa(`:${OPERATOR}`)}` });
  await board.go("/queues/");
  await board.page.getByText("fetch").first().waitFor();
  const refused = board.problems.splice(0);
  expect(refused.filter((problem) => !problem.includes("https://fonts.googleapis.com/"))).toEqual([]);
  expect(refused.filter((problem) => problem.startsWith("request failed"))).toEqual([
    expect.stringMatching(/ csp$/),
  ]);
});
