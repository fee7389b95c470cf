import { afterAll, describe, expect, test } from "vitest";
import { startStandin } from "../../../src/features/standin/server.ts";
import { differences, measured, type Responses, writePage } from "./page.ts";
import { AgentServer, measure, RULES, RULES_OFF } from "./rules.ts";
import { startServer, VERSIONS, type Version } from "./servers.ts";
// One file, so that one real server runs at a time.
import "./sdks.ts";
import "./probe.ts";

/** Every rule of measured.md, on the platform's own server of two versions and on the stand-in. */

const MODES = { "0.16.7": "live", "0.4.21": "specified" } as const;
const LEAST_RULES = 130;
const MOST_DIFFERENCES = 5;
const found: Partial<Record<Version, Responses>> = {};

afterAll(() => {
  const { "0.16.7": first, "0.4.21": second } = found;
  if (process.env.MEASURE && first && second) writePage({ "0.16.7": first, "0.4.21": second });
});

/** A rule that is about time is measured once more alone, because this machine may be busy. */
async function responsesOf(
  server: AgentServer,
  rules: typeof RULES,
  expected: Responses,
): Promise<Map<string, string>> {
  const responses = await measure(server, rules);
  if (process.env.MEASURE) return responses;
  const isWrong = ([name]: [string, unknown]) => responses.get(name) !== expected.get(name);
  for (const some of Object.values(rules)) {
    for (const rule of Object.entries(some).filter(isWrong)) {
      for (const [name, text] of await measure(server, { once: Object.fromEntries([rule]) }))
        responses.set(name, text);
    }
  }
  return responses;
}

describe.each(VERSIONS)("as server %s", (version) => {
  const mode = MODES[version];
  const ofServer = measured(version);

  test(`the stand-in responds, with \`--a2a ${mode}\``, async () => {
    const other = differences(mode);
    const expected = new Map(
      [...ofServer].map(([name, text]) => [name, other.get(name.slice(2)) ?? text] as const),
    );
    const responses = new Map<string, string>();
    for (const [rules, disable_a2a] of [
      [RULES, false],
      [RULES_OFF, true],
    ] as const) {
      const { url, apiKey, close } = await startStandin({ a2a: mode, http: { disable_a2a } });
      const part = await responsesOf(new AgentServer(url, apiKey), rules, expected).finally(close);
      for (const [name, text] of part) responses.set(name, text);
    }
    expect(Object.fromEntries(responses)).toEqual(Object.fromEntries(expected));
    expect(ofServer.size).toBeGreaterThanOrEqual(LEAST_RULES);
    const listed = [...other].filter(([name, text]) =>
      ["S", "M"].some((mark) => (ofServer.get(`${mark} ${name}`) ?? text) !== text),
    );
    expect(listed.length, "A difference is listed that is none.").toBe(other.size);
    expect(listed.length).toBeLessThanOrEqual(MOST_DIFFERENCES);
  });

  test("the real server responds, as the page says", async ({ skip }) => {
    const responses = new Map<string, string>();
    for (const [rules, http] of [
      [RULES, {}],
      [RULES_OFF, { disable_a2a: true }],
    ] as const) {
      const server = await startServer(version, http).catch((error) =>
        skip(`No agent server here: ${error.message}`),
      );
      const part = await responsesOf(new AgentServer(server.url), rules, ofServer).finally(server.close);
      for (const [name, text] of part) responses.set(name, text);
    }
    found[version] = responses;
    if (process.env.MEASURE) return;
    expect(Object.fromEntries(responses)).toEqual(Object.fromEntries(ofServer));
  });
});
