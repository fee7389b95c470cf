import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { expectAccessible, expectKeyboard, expectNoSidewaysScroll } from "../support/browser/checks.ts";
import { inBrowser, openPage, type View } from "../support/browser/page.ts";
import { story } from "../support/browser/screens.ts";
import { openStory } from "../support/browser/site.ts";
import { iso } from "../support/story.ts";

/** What scripts add to coverage: the panel of a cell, and keys in the calendar. Without them cells are links. */

inBrowser();

const days = `/coverage?stride=day&from=${iso(story.today - 10 * DAY_MS)}&to=${iso(story.today)}`;

let site: Awaited<ReturnType<typeof openStory>>;
beforeAll(async () => {
  site = await openStory();
});
afterAll(() => site?.close());

async function openDays(view: View = {}) {
  const opened = await openPage(site.url, view);
  await opened.go(days);
  const { page } = opened;
  const ids = () => page.evaluate<string[]>("[...document.querySelectorAll('[id]')].map(({ id }) => id)");
  const isIn = (selector: string) =>
    page.evaluate<boolean>(
      `document.querySelector(${JSON.stringify(selector)})?.contains(document.activeElement) ?? false`,
    );
  return {
    ...opened,
    opened,
    ids,
    isIn,
    cell: page.locator("[data-grid] td.missing a").first(),
    panel: page.getByRole("complementary"),
  };
}

test.each([
  { width: 1280, scheme: "light" },
  { width: 1280, scheme: "dark" },
  { width: 390, scheme: "light" },
  { width: 390, scheme: "dark" },
] as const)("a cell says beside the table why it is so: %o", async (view) => {
  const { opened, page, cell, panel, ids, isIn } = await openDays(view);
  await cell.click();
  await panel.waitFor();
  expect(await panel.textContent()).toContain("request_refused");
  expect(new URL(page.url()).search).toBe(days.slice(days.indexOf("?")));
  expect(await isIn("aside")).toBe(true);
  const all = await ids();
  expect(all).toEqual([...new Set(all)]);
  // What is beside the panel can be seen: the cell, too.
  const [shown, over] = [await cell.boundingBox(), await panel.boundingBox()];
  if (view.width === 1280) expect((shown?.x ?? 0) + (shown?.width ?? 0)).toBeLessThanOrEqual(over?.x ?? 0);
  else expect((shown?.y ?? 0) + (shown?.height ?? 0)).toBeLessThanOrEqual(over?.y ?? 0);
  await expectAccessible(opened);
  await expectNoSidewaysScroll(opened);

  await page.keyboard.press("Escape");
  expect([await panel.count(), await isIn("[data-grid] td.missing")]).toEqual([0, true]);
  // By keyboard alone, and from one cell to the next.
  await page.keyboard.press("Enter");
  await panel.waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  expect([await panel.count(), await isIn("[data-grid] td.missing")]).toEqual([0, true]);
});

test("links to cells stay in the panel, its retry starts a load, and other links leave it", async () => {
  const { page, cell, panel } = await openDays();
  await cell.click();
  await panel.getByRole("link", { name: "project" }).click();
  await panel.getByRole("row").nth(1).waitFor();
  expect(new URL(page.url()).pathname).toBe("/coverage");
  await panel.getByRole("link", { name: "Reload everything" }).click();
  await page.waitForURL(/\/backfills\/new\?/);
  expect(await page.inputValue("[name=from]")).toBe(iso(story.failed.start));
});

test("a day of the calendar with a gap opens its reason and its retry, in one click", async () => {
  const { page, panel } = await openDays();
  await page.locator(".calendar td.missing a").last().click();
  await panel.waitFor();
  expect(await panel.getByRole("button", { name: "Retry" }).count()).toBe(1);
});

test("whoever wants another window, or has no script, gets what a link does", async () => {
  const { page, context, cell, panel } = await openDays();
  const href = (await cell.getAttribute("href")) ?? "";
  const [other] = await Promise.all([
    context.waitForEvent("page"),
    cell.click({ modifiers: ["ControlOrMeta"] }),
  ]);
  await other.waitForURL(`**${href}`);
  await other.close();
  expect(await panel.count()).toBe(0);

  // The response cannot be read.
  await page.route("**/cell?*", (route) => route.abort("aborted"), { times: 1 });
  await cell.click();
  await page.waitForURL(`**${href}`);

  const without = await openDays({ javascript: false });
  await without.cell.click();
  await without.page.waitForURL(`**${href}`);
});

test("the calendar is one stop of Tab, and arrow keys reach its days", async () => {
  const opened = await openPage(site.url, { width: 390 });
  const { page } = opened;
  await opened.go("/coverage");
  const focused = () => page.evaluate<string>("document.activeElement.title.slice(0, 10)");
  const stops = page.locator(".calendar td a[tabindex='0']");
  expect(await stops.count()).toBe(1);
  const last = (await stops.getAttribute("title"))?.slice(0, 10) ?? "";
  expect([iso(story.today), iso(story.today - DAY_MS)]).toContain(last);
  await stops.focus();
  await page.keyboard.press("ArrowUp");
  const next = await focused();
  expect(next < last).toBe(true);
  expect([await stops.count(), (await stops.getAttribute("title"))?.slice(0, 10)]).toEqual([1, next]);
  await expectKeyboard(opened);
  const to = (await stops.getAttribute("href")) ?? "";
  expect(new URL(to, page.url()).searchParams.get("from")).toBe(next);
});
