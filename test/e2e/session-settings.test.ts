import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { now } from "../support/clock.ts";
import { createTestDatabase } from "../support/database.ts";
import { hasPgBouncer, startPgBouncer } from "../support/pgbouncer.ts";
import {
  type Defaults,
  differences,
  ODD,
  type Outcome,
  readings,
  seenBy,
  stored,
  withDefaults,
  writings,
} from "../support/session-settings.ts";
import { setup } from "../support/source.ts";
import { ensureStory } from "../support/story.ts";

const LEVELS = ["role", "database"] as const;

describe("commands that write", () => {
  const options = { workspaces: [0, 1], days: 34, standin: { scale: 0.3 } };
  let at: number;
  let usual: { printed: Outcome; stored: Outcome } | undefined;

  async function compare(defaults: Defaults, through: (url: string) => Promise<string> = async (url) => url) {
    if (usual === undefined) {
      const bench = await setup(options);
      at = bench.now;
      usual = { printed: await writings(bench, bench.databaseUrl), stored: await stored(bench) };
    }
    const bench = await setup({ ...options, now: at });
    const run = async (url: string) => writings(bench, await through(url));
    const printed = await withDefaults(bench.databaseUrl, defaults, run);
    expect(differences(usual.printed, printed)).toEqual([]);
    expect(differences(usual.stored, await stored(bench))).toEqual([]);
  }

  test.each(LEVELS)(
    "print and store the same with odd defaults of the %s",
    async (level) => {
      await compare({ level, settings: ODD });
    },
    300_000,
  );

  test("print and store the same behind a pooler in transaction mode", async ({ skip }) => {
    if (!hasPgBouncer()) skip("PgBouncer is not installed");
    await compare({ level: "database", settings: ODD }, pooled);
  }, 300_000);
});

describe("commands, exports, pages and tools that read", () => {
  let url: string;
  let usual: { readonly hour: number; readonly shown: Outcome } | undefined;

  beforeAll(async () => {
    await ensureStory();
    const database = await createTestDatabase({ template: "story" });
    url = database.url;
    return () => database.drop();
  }, 120_000);

  /** Both within one hour: what is expected, and so what is missing, changes with the hour. */
  async function compare(defaults: Defaults, read = readings): Promise<string[]> {
    for (;;) {
      const hour = hourNow();
      if (usual?.hour !== hour) usual = { hour, shown: await readings(url) };
      const shown = await withDefaults(url, defaults, (own) => read(own));
      if (hourNow() !== hour) continue;
      return differences(new Map([...usual.shown].filter(([name]) => shown.has(name))), shown);
    }
  }

  test.each(LEVELS)("show the same with odd defaults of the %s", { timeout: 300_000 }, async (level) => {
    expect(await compare({ level, settings: ODD })).toEqual([]);
  });

  test("show the same behind a pooler in transaction mode", { timeout: 300_000 }, async ({ skip }) => {
    if (!hasPgBouncer()) skip("PgBouncer is not installed");
    const defaults: Defaults = { level: "database", settings: ODD };
    expect(await compare(defaults, async (own) => readings(await pooled(own)))).toEqual([]);
  });

  test("a reader's own session sees the same rows in every view, whatever its defaults", {
    timeout: 120_000,
  }, async () => {
    const seen = await withDefaults(url, { level: "role", settings: ODD }, seenBy);
    expect(differences(await seenBy(url), seen)).toEqual([]);
  });
});

function hourNow(): number {
  return Math.floor(now() / HOUR_MS);
}

/** PgBouncer meets the defaults when it connects, so it starts after they are set. */
async function pooled(url: string): Promise<string> {
  const pooler = await startPgBouncer(url);
  onTestFinished(() => pooler.close());
  return pooler.through(url);
}
