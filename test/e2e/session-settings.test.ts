import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
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

/** Whatever defaults a login or a database has, every command, view, page and tool gives the same. */

const ALL_AT_ONCE: Defaults[] = [
  { level: "role", settings: ODD },
  { level: "database", settings: ODD },
];
const ONE_BY_ONE: Defaults[] = Object.entries(ODD).flatMap(([name, value]) =>
  (["role", "database"] as const).map((level) => ({ level, settings: { [name]: value } })),
);
const named = (all: Defaults[]) =>
  all.map((one) => [one.level, Object.keys(one.settings).join(", "), one] as const);

describe("commands that write", () => {
  const options = { workspaces: [0, 1], days: 34, standin: { scale: 0.3 } };
  let now: number;
  let usual: { printed: Outcome; stored: Outcome } | undefined;

  /** On a database, and the same with usual defaults. `through`: the address of a pooler. */
  async function compare(defaults: Defaults, through: (url: string) => Promise<string> = async (url) => url) {
    if (usual === undefined) {
      const bench = await setup(options);
      now = bench.now;
      usual = { printed: await writings(bench, bench.databaseUrl), stored: await stored(bench) };
    }
    const bench = await setup({ ...options, now });
    const run = async (url: string) => writings(bench, await through(url));
    const printed = await withDefaults(bench.databaseUrl, defaults, run);
    expect(differences(usual.printed, printed)).toEqual([]);
    expect(differences(usual.stored, await stored(bench))).toEqual([]);
  }

  test.each(named(ALL_AT_ONCE))(
    "print and store the same with odd defaults of the %s",
    async (_level, _names, defaults) => {
      await compare(defaults);
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
  let usual: Outcome | undefined;

  beforeAll(async () => {
    await ensureStory();
    const database = await createTestDatabase({ template: "story" });
    url = database.url;
    return () => database.drop();
  }, 120_000);

  async function compare(defaults: Defaults, read = readings): Promise<string[]> {
    usual ??= await readings(url);
    const shown = await withDefaults(url, defaults, (own) => read(own));
    return differences(new Map([...usual].filter(([name]) => shown.has(name))), shown);
  }

  test.each(named(ALL_AT_ONCE))(
    "show the same with odd defaults of the %s",
    { timeout: 300_000 },
    async (_level, _names, defaults) => {
      expect(await compare(defaults)).toEqual([]);
    },
  );

  test.each(named(ONE_BY_ONE))(
    "show the same where the %s has its own %s",
    { timeout: 120_000 },
    async (_level, _names, defaults) => {
      expect(await compare(defaults, (own) => readings(own, { hasExports: false }))).toEqual([]);
    },
  );

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

/** PgBouncer meets the defaults when it connects, so it starts after they are set. */
async function pooled(url: string): Promise<string> {
  const pooler = await startPgBouncer(url);
  onTestFinished(() => pooler.close());
  return pooler.through(url);
}
