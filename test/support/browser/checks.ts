import { readFileSync } from "node:fs";
import { AxeBuilder } from "@axe-core/playwright";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import type { Opened } from "./page.ts";

const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const IN_PAGE = readFileSync(new URL("in-page.js", import.meta.url), "utf8")
  .trim()
  .replace(/;$/, "");

/** Calls a function of in-page.js in the page. */
function inPage<T>(page: Page, name: string, ...args: unknown[]): Promise<T> {
  return page.evaluate(`${IN_PAGE}.${name}(${args.map((arg) => JSON.stringify(arg)).join(", ")})`);
}

/** No violation that axe knows, in the page as it is now. */
export async function expectAccessible({ page, withScripts }: Opened): Promise<void> {
  // Legacy: all in this page. Otherwise axe opens a blank page for each run.
  const axe = new AxeBuilder({ page }).withTags(TAGS).setLegacyMode(true);
  const { violations, passes } = await withScripts(() => axe.analyze());
  const found = violations.flatMap(({ id, help, nodes }) =>
    nodes
      .slice(0, 5)
      .map(({ html, failureSummary }) => `${id}: ${help}\n${html.slice(0, 300)}\n${failureSummary}`),
  );
  expect(found, `axe on ${page.url()}`).toEqual([]);
  // An empty document has no violations either.
  expect(passes.length).toBeGreaterThan(5);
}

/** The page itself scrolls in one direction only: what is wider scrolls in a region of its own. */
export async function expectNoSidewaysScroll({ page }: Opened): Promise<void> {
  expect(await inPage(page, "tooWide"), `width of ${page.url()}`).toEqual([]);
}

/** Parts of a field for a day where Tab stops: month, day, year, calendar. */
const STOPS_OF_A_DAY = 4;

/** Tab reaches every visible thing that can be worked, and shows where it is. */
export async function expectKeyboard({ page }: Opened): Promise<void> {
  const stops = await inPage<number>(page, "numberTabStops");
  expect(stops).toBeGreaterThan(0);
  const days = await page.locator("input[type=date]").count();
  const seen = new Map<string | null, { isShown: boolean; html: string }>();
  // Some more, since the keyboard passes through the browser itself.
  for (let press = 0; press < stops + days * (STOPS_OF_A_DAY - 1) + 3; press++) {
    await page.keyboard.press("Tab");
    const at = await inPage<{ stop: string | null; isShown: boolean; html: string } | null>(page, "tabStop");
    // The calendar of a day has a mark of its own, which the page cannot ask for.
    if (at !== null) seen.set(at.stop, { ...at, isShown: at.isShown || seen.get(at.stop)?.isShown === true });
  }
  const unseen = [...seen.values()].filter(({ isShown }) => !isShown).map(({ html }) => html);
  const missed = await inPage(page, "missedTabStops", [...seen.keys()]);
  expect({ unseen, missed }, `keyboard on ${page.url()}`).toEqual({ unseen: [], missed: [] });
}

/** Nothing moves where that is not wanted. */
export async function expectStill({ page }: Opened): Promise<void> {
  expect(await inPage(page, "moving"), `motion on ${page.url()}`).toEqual([]);
}
