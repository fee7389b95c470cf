import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openStore } from "../../src/store/db/database.ts";
import {
  expectAccessible,
  expectKeyboard,
  expectNoSidewaysScroll,
  expectStill,
} from "../support/browser/checks.ts";
import { inBrowser, type Opened, openPage, type View } from "../support/browser/page.ts";
import { openSite } from "../support/browser/site.ts";
import { HOSTILE, iso, storyOf } from "../support/story.ts";

/** Each screen, in the states that it may be in, as different people look at it. */

inBrowser();

type Site = Awaited<ReturnType<typeof openSite>>;
const VIEWER = "viewers-token-4712";
const story = storyOf(Date.now());
const month = iso(story.month.start).slice(0, 7);
const range = (of: { start: number; end: number }) => `from=${iso(of.start)}&to=${iso(of.end)}`;

const SCREENS: readonly (readonly [name: string, path: string, says: RegExp])[] = [
  ["the overview", "/", /final and proved until/i],
  ["coverage by month", "/coverage", /<script>alert\(1\)<\/script>/],
  ["coverage by day", `/coverage?stride=day&${range(story.month)}`, /Coverage/],
  [
    "a loaded cell",
    `/cell?source=default&workspace=WORKSPACE&stride=day&group_by=project&${range(story.restated)}`,
    /./,
  ],
  [
    "a failed cell",
    `/cell?source=default&workspace=WORKSPACE&stride=day&group_by=project&${range(story.failed)}`,
    /request_refused/,
  ],
  ["backfills", "/backfills", /waiting|running/i],
  ["a backfill", "/backfills/1", /backfill/i],
  ["a new backfill", `/backfills/new?stride=day&${range(story.gap)}`, /windows|requests/i],
  ["usage by project", `/usage?by=project&${range(story.month)}`, /traces/i],
  [
    "usage by hour",
    `/usage?by=user&per=hour&from=${iso(story.today - 86_400_000)}&to=${iso(story.today)}`,
    /traces/i,
  ],
  ["differences", "/differences", /export/i],
  ["months", "/months", new RegExp(month)],
  ["a closed month", `/months/${month}`, /closed/i],
  ["the timeline", "/timeline", /./],
];

/** Both schemes, each narrow and wide, with scripts and without, are seen in any two neighbours. */
const VIEWS: readonly View[] = [
  { javascript: true, scheme: "dark", width: 320 },
  { javascript: false, scheme: "light", width: 1280 },
  { javascript: true, scheme: "light", width: 320 },
  { javascript: false, scheme: "dark", width: 1280 },
  { javascript: false, scheme: "light", width: 320 },
  { javascript: true, scheme: "dark", width: 1280 },
  { javascript: false, scheme: "dark", width: 320 },
  { javascript: true, scheme: "light", width: 1280 },
];
const viewOf = (place: number): View => VIEWS[place % VIEWS.length] as View;

async function expectSound(opened: Opened): Promise<void> {
  await expectNoSidewaysScroll(opened);
  await expectAccessible(opened);
}

/** The site, and the paths of its screens with what only its database knows. */
async function openStory(options?: Parameters<typeof openSite>[1]) {
  const site = await openSite("story", options);
  const { rows } = await site.store.transaction(({ client }) =>
    client.query<{ id: string }>(
      "SELECT workspace_id AS id FROM reporting.dim_workspace WHERE workspace_name = $1",
      [HOSTILE.workspace],
    ),
  );
  const workspace = rows[0]?.id ?? "none";
  return { ...site, at: (path: string) => path.replace("WORKSPACE", workspace) };
}

describe("with all that can happen in the database", () => {
  let site: Awaited<ReturnType<typeof openStory>>;
  beforeAll(async () => {
    site = await openStory();
  });
  afterAll(() => site?.close());

  test.each(SCREENS.map((screen, place) => [...screen, place] as const))(
    "%s is sound, works by keyboard, and shows hostile names as text",
    async (_, path, says, place) => {
      for (const view of [viewOf(2 * place), viewOf(2 * place + 1)]) {
        const opened = await openPage(site.url, view);
        const { page } = opened;
        await opened.go(site.at(path));
        expect(await page.textContent("main")).toMatch(says);
        await expectSound(opened);
        expect(
          await page.locator("main img, main svg[onload], main script:not([src]), main [onfocus]").count(),
        ).toBe(0);
        if (view.javascript !== true) continue;
        await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
        await expectStill(opened);
        await expectKeyboard(opened);
      }
    },
  );
});

describe("with an empty database", () => {
  let site: Site;
  beforeAll(async () => {
    site = await openSite("migrated");
  });
  afterAll(() => site?.close());

  test("each screen says what to do first, or that there is nothing of that kind", async () => {
    for (const view of VIEWS.slice(0, 2)) {
      const opened = await openPage(site.url, view);
      for (const [, path] of SCREENS) {
        const response = await opened.page.goto(path);
        expect([path, [200, 404, 400].includes(response?.status() ?? 0)]).toEqual([path, true]);
        expect((await opened.page.textContent("main"))?.length).toBeGreaterThan(20);
        await expectNoSidewaysScroll(opened);
      }
      opened.problems.splice(0);
      await opened.go("/");
      await expectSound(opened);
    }
  });
});

test("without Postgres each screen says so and leads on", async () => {
  const away = openStore({ url: "postgresql://nobody:nothing@127.0.0.1:9/none", maxConnections: 1 });
  const site = await openSite("migrated", { services: { reader: away.db } });
  try {
    const opened = await openPage(site.url, viewOf(0));
    for (const [, path] of SCREENS) {
      await opened.go(path, 503);
      expect(await opened.page.textContent("main")).toContain("postgres_unreachable");
    }
    await expectSound(opened);
    expect(JSON.stringify(site.logs)).not.toContain("nothing@");
  } finally {
    await site.close();
    await away.close();
  }
});

test("who only looks gets no form and no address of a user", async () => {
  const environment = { USAGE_WEB_TOKEN: "operators-token-4711", USAGE_WEB_READ_TOKEN: VIEWER };
  const site = await openStory({ environment });
  try {
    const opened = await openPage(site.url, viewOf(1));
    await opened.go("/usage?by=user", 200);
    expect(new URL(opened.page.url()).pathname).toBe("/login");
    await expectSound(opened);
    await opened.page.fill("input[name=token]", VIEWER);
    await opened.page.keyboard.press("Enter");
    await opened.page.waitForURL(/\/usage/);
    for (const [, path] of SCREENS) {
      await opened.go(site.at(path));
      const text = await opened.page.textContent("body");
      expect(text, path).not.toMatch(/@[a-z]*[xä]mple/);
      const actions = await opened.page.evaluate(
        "[...document.querySelectorAll('form[method=post]')].map((form) => form.getAttribute('action'))",
      );
      expect([path, actions]).toEqual([path, ["/logout"]]);
    }
  } finally {
    await site.close();
  }
});

test("what is not there or cannot be read has a page that leads on", async () => {
  const site = await openSite("story");
  try {
    const opened = await openPage(site.url, viewOf(3));
    const wrong: [string, number][] = [
      ["/nowhere", 404],
      ["/backfills/4711", 404],
      ["/backfills/x", 404],
      ["/coverage?source=nobody", 404],
      ["/coverage?from=never", 400],
      ["/cell?stride=fortnight", 400],
      ["/usage?from=2026-13-01", 400],
      ["/usage?by=shoe", 400],
      ["/usage?from=2026-11-02&to=2026-11-01", 400],
      ["/differences?source=<script>alert(1)</script>", 404],
      ["/months/2026-13", 400],
      ["/months/1999-01", 400],
      ["/timeline?before=x", 400],
      ["/backfills/new?from=x", 400],
    ];
    const seen: [string, number | undefined][] = [];
    for (const [path] of wrong) {
      const response = await opened.page.goto(path);
      seen.push([path, response?.status()]);
      expect(await opened.page.locator("body a[href='/']").count(), path).toBeGreaterThan(0);
      await expectNoSidewaysScroll(opened);
    }
    opened.problems.splice(0);
    expect(seen).toEqual(wrong);
    await expectAccessible(opened);
  } finally {
    await site.close();
  }
});
