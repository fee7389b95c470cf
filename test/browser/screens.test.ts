import { afterAll, beforeAll, expect, test } from "vitest";
import {
  expectAccessible,
  expectKeyboard,
  expectNoSidewaysScroll,
  expectStill,
  expectText,
} from "../support/browser/checks.ts";
import { inBrowser, openPage } from "../support/browser/page.ts";
import { SCREENS } from "../support/browser/screens.ts";
import { openStory } from "../support/browser/site.ts";

/** Each screen with all that can happen in the database, as different people look at it. */

inBrowser();

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
