import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";
import { expect } from "vitest";
import { printableLine } from "../../../src/core/base/printable.ts";
import type { Opened } from "./page.ts";

const require = createRequire(import.meta.url);
/** Half as long as what the package exports, so half as long to hand over. */
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
/** What depends on colours and width. */
const SEEN = ["color-contrast", "link-in-text-block", "target-size", "scrollable-region-focusable"];
const IN_PAGE = readFileSync(new URL("in-page.js", import.meta.url), "utf8")
  .trim()
  .replace(/;$/, "");

/** Calls a function of in-page.js in the page. */
export function inPage<T>(page: Page, name: string, ...args: unknown[]): Promise<T> {
  return page.evaluate(`${IN_PAGE}.${name}(${args.map((arg) => JSON.stringify(arg)).join(", ")})`);
}

/**
 * No violation that axe knows, in the page as it is now. `again`: the page was checked already, and is only seen otherwise
 * (colours, width) since.
 */
export async function expectAccessible(
  { page, withScripts }: Opened,
  { again = false }: { again?: boolean } = {},
): Promise<void> {
  const runOnly = again ? { type: "rule", values: SEEN } : { type: "tag", values: TAGS };
  // One node of what passes or cannot be told: describing all of them takes as long as looking.
  const options = { runOnly, resultTypes: ["violations"] };
  const { found, passed } = await withScripts(async () => {
    if (!(await page.evaluate<boolean>(`"axe" in window`))) await page.evaluate(AXE);
    return inPage<{ found: string[]; passed: number }>(page, "violations", options);
  });
  expect(found, `axe on ${page.url()}`).toEqual([]);
  // An empty document has no violations either.
  expect(passed).toBeGreaterThan(again ? 0 : 5);
}

/** The page itself scrolls in one direction only: what is wider scrolls in a region of its own. */
export async function expectNoSidewaysScroll({ page }: Opened): Promise<void> {
  expect(await inPage(page, "tooWide"), `width of ${page.url()}`).toEqual([]);
}

/** Parts of a field for an hour where Tab stops: month, day, year, hour, minute, half of the day, calendar. */
const STOPS_OF_AN_HOUR = 7;

/** Tab reaches every visible thing that can be worked, and shows where it is. */
export async function expectKeyboard({ page, withScripts }: Opened): Promise<void> {
  const fields = await page.locator("input[type=date], input[type=datetime-local]").count();
  const found = await withScripts(async () => {
    const stops = await inPage<number>(page, "watchTabStops");
    expect(stops).toBeGreaterThan(0);
    // Some more, since the keyboard passes through the browser itself.
    for (let press = 0; press < stops + fields * (STOPS_OF_AN_HOUR - 1) + 3; press++)
      await page.keyboard.press("Tab");
    return inPage(page, "tabStops");
  });
  expect(found, `keyboard on ${page.url()}`).toEqual({ unseen: [], missed: [] });
}

/** Nothing moves where that is not wanted. */
export async function expectStill({ page }: Opened): Promise<void> {
  expect(await inPage(page, "moving"), `motion on ${page.url()}`).toEqual([]);
}

/** Names from outside stand there as text: those named, whole or with the whole as a title, and none as anything else. */
export async function expectText({ page }: Opened, names: readonly string[]): Promise<void> {
  const texts = names.map((name) => printableLine(name.replaceAll("\0", "\u{FFFD}")).trim() || "(blank)");
  expect(await inPage(page, "missingTexts", texts), `names on ${page.url()}`).toEqual([]);
  expect(await inPage(page, "injected"), `elements on ${page.url()}`).toEqual([]);
}
