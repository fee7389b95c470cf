import { afterAll, beforeAll, expect, test } from "vitest";
import { DAY_MS } from "../../src/domain/time/stride.ts";
import {
  expectAccessible,
  expectKeyboard,
  expectNoSidewaysScroll,
  expectStill,
  expectText,
  inPage,
} from "../support/browser/checks.ts";
import { inBrowser, openPage } from "../support/browser/page.ts";
import { SCREENS } from "../support/browser/screens.ts";
import { openStory } from "../support/browser/site.ts";
import { iso, storyOf } from "../support/story.ts";

/** Each screen with all that can happen in the database, as different people look at it. */

inBrowser();

const story = storyOf(Date.now());

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

test.each([{ width: 1280 }, { width: 320, javascript: false }])(
  "whoever points at a bucket of a chart is told its figure, which stands in the table too: %o",
  async (view) => {
    const opened = await openPage(site.url, view);
    const [from, to] = [story.month.start, story.gap.end + 2 * DAY_MS].map(iso);
    await opened.go(`/usage?by=workspace&from=${from}&to=${to}`);
    const told = await inPage<string[]>(opened.page, "tooltips");
    const rows = await inPage<string[][]>(opened.page, "cells", "details.figures");
    expect(told).toEqual(
      rows.map(([day, figure, state]) =>
        figure === "not loaded"
          ? `${day}: not fully loaded`
          : `${day}: ${figure} traces${state?.includes("final") ? "" : ", provisional"}`,
      ),
    );
    // Days of each kind are among them.
    expect(told).toContain(`${iso(story.gap.start)}: not fully loaded`);
    expect(told.length).toBeGreaterThan(30);
  },
);
