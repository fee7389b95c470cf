import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, onTestFinished, test } from "vitest";
import type { Clock } from "../../src/core/base/clock.ts";
import type { Database } from "../../src/core/store/db/database.ts";
import { steerBackfill } from "../../src/core/store/work/backfills.ts";
import { inBrowser, openPage } from "../support/browser/page.ts";
import { openStory } from "../support/browser/site.ts";
import { now as startedAt } from "../support/clock.ts";
import { poll } from "../support/poll.ts";

/** A page that stays open is made new by the server, and costs no more than one that was just opened. */

inBrowser();

const ACTOR = { name: "ana", role: "operator", via: "page" } as const;

/** A clock that stands still until the test lets time pass. */
function standingClock() {
  let now = startedAt();
  const waiting = new Set<() => void>();
  const clock: Clock = {
    now: () => now,
    wait: (_, signal) =>
      new Promise((resolve) => {
        const go = () => {
          waiting.delete(go);
          resolve();
        };
        waiting.add(go);
        signal?.addEventListener("abort", go, { once: true });
      }),
  };
  const pass = (ms: number) => {
    now += ms;
    for (const go of [...waiting]) go();
  };
  return { clock, waiting, pass };
}

/** The same database, with a count of the statements that were sent. */
function counted(db: Database): { db: Database; statements: () => number } {
  let statements = 0;
  const counting = db.withPlugin({
    transformQuery: ({ node }) => {
      statements++;
      return node;
    },
    transformResult: async ({ result }) => result,
  });
  return { db: counting, statements: () => statements };
}

async function setup() {
  const time = standingClock();
  let statements = () => 0;
  const site = await openStory((store) => {
    const reader = counted(store.db);
    statements = reader.statements;
    return { services: { clock: time.clock, reader: reader.db } };
  });
  onTestFinished(site.close);
  /** Lets a look at the page pass, and resolves when the next one is awaited. */
  const look = async (ms: number) => {
    await poll(() => time.waiting.size > 0);
    const before = statements();
    time.pass(ms);
    await poll(() => time.waiting.size > 0 && statements() > before);
    return statements() - before;
  };
  return { ...site, ...time, look };
}

test("the overview changes without a reload, keeps the keyboard where it is, and stays as of now", async () => {
  const { url, look, store, waiting } = await setup();
  const opened = await openPage(url);
  const { page } = opened;
  await opened.go("/");
  const text = async () => (await page.textContent("main"))?.replace(/\s+/g, " ") ?? "";
  await poll(() => waiting.size === 1);
  await page.evaluate("window.stayed = true");
  // What somebody opens stays so.
  const isOpen = () => page.evaluate("document.querySelector('details[id^=checks-]').open");
  expect(await isOpen()).toBe(false);
  await page.locator("details[id^='checks-'] > summary").click();
  await page.locator("[data-live] a[href^='/usage']").first().focus();
  const [, tasks] = /Fetch tasks\s*(\d+) waiting/.exec(await text()) ?? [];
  expect(Number(tasks)).toBeGreaterThan(0);

  await steerBackfill(store, { backfillId: 1, action: "cancel", by: ACTOR });
  await look(15_000);
  await poll(async () => (await text()).match(/Fetch tasks\s*0 waiting/));
  expect(await page.evaluate("document.activeElement.getAttribute('href')")).toMatch(/^\/usage/);
  expect(await isOpen()).toBe(true);
  // What was sent is the page as the server has it now.
  const [shown, served] = (await page.evaluate(`(async () => {
    const html = await (await fetch("/")).text();
    const ours = (root) => root.querySelector("[data-live]").innerHTML.replaceAll(' open=""', "");
    return [ours(document), ours(new DOMParser().parseFromString(html, "text/html"))];
  })()`)) as string[];
  expect(shown).toBe(served);

  // Nothing changes, but what stands there is true now.
  const asOf = () => page.textContent("[data-as-of] time");
  const before = await asOf();
  await poll(
    async () => {
      await look(15_000);
      return (await asOf()) !== before;
    },
    { everyMs: 300 },
  );
  expect(await page.evaluate("window.stayed")).toBe(true);

  // Nobody looks: nothing is asked, until somebody does again.
  const hide = (hidden: boolean) =>
    page.evaluate(
      `Object.defineProperty(document, "hidden", { value: ${hidden}, configurable: true });
       document.dispatchEvent(new Event("visibilitychange"))`,
    );
  await hide(true);
  await poll(() => waiting.size === 0);
  await hide(false);
  await poll(() => waiting.size === 1);
  await opened.go("/months");
  await poll(() => waiting.size === 0);
});

/** Looks at each page. A day of the overview: `LOOKS=5760`. */
const LOOKS = Number(process.env.LOOKS ?? 25);
/** MB, after a collection of what nobody holds. */
const ROOM = 10;
setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

test("a page that stays open asks as much at each look, and grows neither here nor there", async () => {
  const { url, look, pass, waiting } = await setup();
  for (const [path, everyMs, most] of [
    ["/", 15_000, 25],
    ["/backfills/1", 2_000, 8],
  ] as const) {
    const opened = await openPage(url);
    const { page } = opened;
    await opened.go(path);
    const elements = () => page.evaluate<number>("document.querySelectorAll('*').length");
    const first = await look(everyMs);
    expect([path, first <= most, first]).toEqual([path, true, first]);
    const cdp = await page.context().newCDPSession(page);
    const held = async () => {
      collect();
      await cdp.send("HeapProfiler.collectGarbage");
      const { usedSize } = await cdp.send("Runtime.getHeapUsage");
      return { here: process.memoryUsage().heapUsed / 1e6, there: usedSize / 1e6 };
    };
    const [before, heldBefore] = [await elements(), await held()];
    for (let n = 1; n <= LOOKS; n++) {
      expect(await look(everyMs)).toBe(first);
      if (n % 25 !== 0) continue;
      // After ten minutes the stream ends, and the page asks for another by itself.
      pass(600_000);
      await poll(() => waiting.size === 0);
      await poll(() => waiting.size === 1, { deadlineMs: 15_000, everyMs: 100 });
      expect(await elements()).toBe(before);
    }
    const { here, there } = await held();
    const grown = { here: here - heldBefore.here, there: there - heldBefore.there };
    if (LOOKS > 25) console.info(`${path}: ${LOOKS} looks, ${JSON.stringify(grown)} MB more`);
    expect([grown.here < ROOM, grown.there < ROOM, grown]).toEqual([true, true, grown]);
    await page.close();
    await poll(() => waiting.size === 0);
  }
});
