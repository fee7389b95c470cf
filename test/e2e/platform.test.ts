import { expect, onTestFinished, test } from "vitest";
import { startStandin } from "../../src/features/standin/server.ts";
import { usageEtl } from "../support/cli.ts";
import { setupMigrated } from "../support/store.ts";

async function setup() {
  const standin = await startStandin();
  onTestFinished(() => standin.close());
  const environment = {
    USAGE_API_KEY: standin.apiKey,
    USAGE_CONTROL_PLANE_URL: standin.url,
    USAGE_DEPLOYMENT_URL: standin.url,
  };
  const run = (args: string[], more: Record<string, string> = {}) =>
    usageEtl(args, { ...environment, ...more });
  const json = async (args: string[], more?: Record<string, string>) => {
    const ended = await run([...args, "--json"], more);
    return { ...ended, data: ended.stdout === "" ? undefined : JSON.parse(ended.stdout) };
  };
  return { standin, environment, run, json };
}

const PROBE = ["probe", "--project", "agent-server", "--settle-for", "PT1S"];

test("probe sends nothing without --yes, matches what was billed, ends with 4 on a difference and with 5 where the key is refused", async () => {
  const { standin, run, json } = await setup();
  const own = { DATABASE_URL: (await setupMigrated()).url, USAGE_BASE_URL: standin.url };
  const probe = (...more: string[]) => json([...PROBE, ...more], own);
  const refused = await run(PROBE, own);
  expect([refused.code, refused.stderr]).toEqual([2, expect.stringContaining("probe_unconfirmed")]);
  expect(standin.organisation.projects.some((one) => one.name === "agent-server")).toBe(false);

  const matched = await probe("--yes");
  expect([matched.code, matched.data[0]]).toMatchObject([0, { state: "matched", expected: 6 }]);
  expect(matched.stderr).toContain("6 of 6 traces billed");

  standin.faults.set({ metering: [{ fault: { kind: "drop" }, times: 1 }] });
  const differs = await probe("--yes", "--within", "PT1S");
  expect([differs.code, differs.data[0]]).toMatchObject([4, { state: "differs", code: "probe_differs" }]);

  standin.faults.script({ fault: { kind: "status", status: 403 }, match: { path: "/threads" } });
  expect((await probe("--yes")).code).toBe(5);
});
