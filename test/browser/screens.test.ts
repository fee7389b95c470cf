import { afterAll, beforeAll, expect, test } from "vitest";
import { dayTitle } from "../../src/core/domain/months/month.ts";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import {
  expectAccessible,
  expectKeyboard,
  expectNoSidewaysScroll,
  expectStill,
  expectText,
  inPage,
} from "../support/browser/checks.ts";
import { inBrowser, openPage } from "../support/browser/page.ts";
import { SCREENS, story } from "../support/browser/screens.ts";
import { openStory } from "../support/browser/site.ts";
import { iso } from "../support/story.ts";

/** Each screen with all that can happen in the database, as different people look at it. */

inBrowser();

const titled = (day = "") => dayTitle(day, { withYear: true });

let site: Awaited<ReturnType<typeof openStory>>;
beforeAll(async () => {
  site = await openStory();
});
afterAll(() => site?.close());

test.each(SCREENS.map((screen, place) => [screen.name, screen, place] as const))(
  "%s is sound, works by keyboard, and shows hostile names as text",
  async (_, { path, says, names = [] }, place) => {
    const schemes = place % 2 === 0 ? (["dark", "light"] as const) : (["light", "dark"] as const);
    const opened = await openPage(site.url, { width: 320, scheme: schemes[0] });
    const { page } = opened;
    await opened.go(site.at(path));
    expect(await page.textContent("main")).toMatch(says);
    await expectText(opened, names);
    await expectNoSidewaysScroll(opened);
    await expectAccessible(opened);
    await page.emulateMedia({ colorScheme: schemes[1] });
    await expectAccessible(opened, { again: true });
    await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
    await expectStill(opened);
    await expectKeyboard(opened);

    const without = await openPage(site.url, { javascript: false, scheme: schemes[0] });
    await without.go(site.at(path));
    expect(await without.page.textContent("main")).toMatch(says);
    await expectText(without, names);
    await expectNoSidewaysScroll(without);
    await expectAccessible(without);
  },
);

test("the statement of a month is printed on one page, without what only a screen can do", async () => {
  const opened = await openPage(site.url, { width: 1280 });
  const month = iso(story.month.start).slice(0, 7);
  await opened.go(`/months/${month}`);
  await opened.page.emulateMedia({ media: "print" });
  const buttons = opened.page.locator("button, .button, summary").filter({ visible: true });
  expect(await buttons.allTextContents()).toEqual([]);
  const pdf = (await opened.page.pdf({ format: "A4" })).toString("latin1");
  expect(pdf.match(/\/Type\s*\/Page\b/g)).toHaveLength(1);
});

test.each([{ width: 1280 }, { width: 320, javascript: false }])(
  "whoever points at a bucket of a chart is told its figure, which stands in the table too: %o",
  async (view) => {
    const opened = await openPage(site.url, view);
    const [from, to] = [story.month.start, story.gap.end + 2 * DAY_MS].map(iso);
    await opened.go(`/usage?by=workspace&from=${from}&to=${to}`);
    const told = await inPage<string[]>(opened.page, "tooltips");
    const rows = await inPage<string[][]>(opened.page, "cells", "details.figures");
    // What a figure is made of stands below it. The day with a restatement is marked.
    const marked = told.filter((one) => one.includes(", changed when it was final"));
    expect(marked).toHaveLength(1);
    expect(told.map((one) => one.split("\n")[0]?.replace(", changed when it was final", ""))).toEqual(
      rows.map(([day, figure, state]) =>
        figure === "not loaded"
          ? `${titled(day)}: not fully loaded`
          : `${titled(day)}: ${figure} traces${/Final|Proved/.test(state ?? "") ? "" : ", provisional"}`,
      ),
    );
    // Days of each kind are among them.
    expect(told).toContain(`${titled(iso(story.gap.start))}: not fully loaded`);
    expect(told.length).toBeGreaterThan(30);
  },
);

test("a chart is read with the arrow keys, and a range of it is chosen by dragging or by keys", async () => {
  const { page, go } = await openPage(site.url, { width: 1280 });
  const [from, to] = [story.month.start, story.month.start + 20 * DAY_MS].map(iso);
  const begin = () => go(`/usage?by=project&from=${from}&to=${to}`);
  await begin();
  const titles = await inPage<string[]>(page, "tooltips");
  const readout = page.locator(".readout");
  await page.locator(".scroll:has(svg[data-zoom])").focus();
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  expect((await readout.textContent())?.split(" · ")[0]).toBe(titles[1]?.split("\n")[0]);
  // The key has what it is made of.
  const [, value = "none"] = /\n.+: ([\d,]+)/.exec(titles[1] ?? "") ?? [];
  expect(await page.textContent(".legend")).toContain(value);
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  const days = [1, 3].map((n) => iso(story.month.start + n * DAY_MS));
  expect(await readout.textContent()).toContain(days.join(" to "));
  const chosen = () =>
    [...new URL(page.url()).searchParams].filter(([name]) => name === "from" || name === "to");
  const wanted = [
    ["from", days[0]],
    ["to", iso(story.month.start + 4 * DAY_MS)],
  ];
  await Promise.all([page.waitForURL(`**from=${days[0]}**`), page.keyboard.press("Enter")]);
  expect(chosen()).toEqual(wanted);
  await begin();
  const hits = page.locator("svg[data-zoom] .hit");
  const middle = async (n: number) => {
    const { x = 0, y = 0, width = 0, height = 0 } = (await hits.nth(n).boundingBox()) ?? {};
    return [x + width / 2, y + height / 2] as const;
  };
  await page.mouse.move(...(await middle(3)));
  await page.mouse.down();
  await page.mouse.move(...(await middle(2)));
  await page.mouse.move(...(await middle(1)));
  await Promise.all([page.waitForURL(`**from=${days[0]}**`), page.mouse.up()]);
  expect(chosen()).toEqual(wanted);
});
