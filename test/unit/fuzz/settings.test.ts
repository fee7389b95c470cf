import { writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { expect, test } from "vitest";
import { jobsOf } from "../../../jobs/schedule.ts";
import { configurationDigest, readConfig } from "../../../src/core/base/config.ts";
import { isSecret, SETTINGS } from "../../../src/core/base/settings.ts";
import { temporaryFolder } from "../../support/temporary.ts";
import { anyJson, holds, KEY, often, outcomeOf, SEED } from "./fuzz.ts";

const wordsOf = (text: string) => fc.constantFrom(...text.split(/\s+/));
const text = fc.oneof(
  wordsOf(`0 -1 1e308 NaN ${"9".repeat(30)} 0x1F P1D PT0S P99999999Y P-1D PT1e9S`),
  wordsOf("2026-01-05 0001-01-01 2026-02-30 keep on info é __proto__"),
  wordsOf(
    `${KEY} http://u:${KEY}@h postgres://u:${KEY}@h/d redis://:${KEY}@h mysql://u:${KEY}@h http://[::1] http://h:99999`,
  ),
  wordsOf("11111111-2222-3333-4444-555555555555 a,b , https://x.example/p postgres://[ /dev/null /nowhere"),
  fc.constantFrom("", " ", "a\nb", "\u0000"),
  fc.string({ maxLength: 20, unit: "binary" }),
);
const names = Object.keys(SETTINGS);
const secrets = names.filter(isSecret).flatMap((name) => [name, `${name}_FILE`]);
const mayHoldKey = (name: string) => secrets.includes(name) || name.endsWith("_URL");
const environment = fc
  .dictionary(
    fc.oneof(
      { weight: 6, arbitrary: fc.constantFrom(...names) },
      fc.constantFrom(...secrets, "USAGE_BASE_URL_FILE", "USAGE_X", "PATH"),
    ),
    text,
    { maxKeys: 6 },
  )
  .map((all) =>
    Object.fromEntries(
      Object.entries(all).map(([name, value]) => [
        name,
        mayHoldKey(name) ? value : value.replaceAll(KEY, "x"),
      ]),
    ),
  );

test(`an environment is read, or all that is wrong is said (seed ${SEED})`, async () => {
  await holds("configuration", environment, 250, async (variables) => {
    const outcome = await outcomeOf(() => readConfig({ ...variables }));
    if ("code" in outcome) return expect(outcome.code).toBe("configuration_invalid");
    const config = outcome.value;
    for (const one of config.sources) expect(configurationDigest(one)).toMatch(/^[0-9a-f]{32}$/);
    for (const [name, value] of Object.entries(config)) {
      if (typeof value === "number")
        expect([name, Number.isFinite(value) && value <= 36_525 * 86_400_000]).toEqual([name, true]);
    }
    expect(JSON.stringify(config)).not.toContain(KEY);
  });
});

test(`a file of sources is read, or all that is wrong is said (seed ${SEED})`, async () => {
  const folder = temporaryFolder();
  const file = join(folder, "sources.json");
  const field = wordsOf(
    "slug baseUrl apiKey organizationId workspaceIds dataStart rateLimit responseLimit workspaceId bearerToken bearerTokenFile x",
  );
  const source = fc.dictionary(field, fc.oneof(text, anyJson), { maxKeys: 8 });
  const content = fc.oneof(
    fc.array(source, { maxLength: 2 }).map((all) => JSON.stringify(all)),
    anyJson.map((one) => JSON.stringify(one)),
    text,
  );
  await fc.assert(
    fc.asyncProperty(content, async (written) => {
      writeFileSync(file, written);
      const outcome = await outcomeOf(() => readConfig({ USAGE_SOURCES_FILE: file }));
      if ("code" in outcome) expect(outcome.code).toBe("configuration_invalid");
      else expect(outcome.value.sources.length).toBeGreaterThan(0);
    }),
    often(150),
  );
});

test(`data of a job are what its payload says, or refused without a crash (seed ${SEED})`, () => {
  const data = fc.oneof(
    anyJson,
    fc.dictionary(
      fc.constantFrom("taskId", "generation", "days", "keepDays", "keepHours", "reach", "x"),
      fc.oneof(anyJson, fc.constantFrom(1, 0, -1, 1.5, 2 ** 53, "1", "month")),
    ),
  );
  fc.assert(
    fc.property(data, (given) => {
      for (const { payload } of jobsOf([]).values()) {
        const parsed = payload.safeParse(given);
        if (!parsed.success) continue;
        expect(parsed.data).toEqual(given);
        for (const value of Object.values(parsed.data))
          if (typeof value === "number") expect(Number.isSafeInteger(value)).toBe(true);
      }
    }),
    often(500),
  );
});
