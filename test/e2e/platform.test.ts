import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { startStandin } from "../../src/features/standin/server.ts";
import { usageEtl } from "../support/cli.ts";
import { setupMigrated } from "../support/store.ts";
import { temporaryFolder } from "../support/temporary.ts";

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

test("platform commands print data, show each status and set their exit code", async () => {
  const { run, json, standin } = await setup();
  const folder = temporaryFolder();
  const body = (image: string, created: object = { name: "d", source: "external_docker" }) => {
    const file = join(folder, `${image}-${Object.keys(created).length}.json`);
    writeFileSync(file, JSON.stringify({ ...created, source_revision_config: { image_uri: image } }));
    return file;
  };
  const [
    renamed,
    taken,
    bad,
    deployed,
    failed,
    ran,
    ranBadly,
    asked,
    sent,
    streamed,
    card,
    refused,
    missing,
  ] = await Promise.all([
    json(["platform", "template", "rename", "node", "node-24"]),
    run(["platform", "template", "rename", "python", "python-3"]).then(() =>
      run(["platform", "template", "rename", "python-3", "Python"]),
    ),
    run(["platform", "deployment", "create", "--body", join(folder, "nowhere.json")]),
    json(["platform", "deployment", "create", "--body", body("good"), "--wait"]),
    run(["platform", "deployment", "create", "--body", body("fail"), "--wait"]),
    json(["platform", "run", "hello", "--strategy", "rollback"]),
    json(["platform", "run", "fail"]),
    json(["platform", "run", "question"]),
    json(["platform", "a2a", "send", "hello"]),
    run(["platform", "a2a", "stream", "hello"]),
    json(["platform", "a2a", "card"]),
    run(["platform", "a2a", "card"], { USAGE_API_KEY: "wrong-key-here" }),
    run(["platform", "run", "x"], { USAGE_DEPLOYMENT_URL: "" }),
  ]);
  expect([renamed.code, renamed.data]).toMatchObject([0, { name: "node-24", image: "node:24-slim" }]);
  expect([taken.code, taken.stderr]).toEqual([2, expect.stringContaining("template_name_invalid")]);
  expect([bad.code, bad.stderr]).toEqual([2, expect.stringContaining("body_invalid")]);
  expect([deployed.code, deployed.data.status]).toEqual([0, "DEPLOYED"]);
  expect(deployed.stderr.match(/CREATING|QUEUED|BUILDING|DEPLOYING|DEPLOYED/g)).toHaveLength(5);
  expect([failed.code, failed.stdout]).toEqual([3, expect.stringContaining("BUILD_FAILED")]);
  expect([ran.code, ran.data]).toMatchObject([0, { status: "success", reply: "Echo: hello" }]);
  expect([ranBadly.code, ranBadly.data]).toMatchObject([3, { status: "error", reply: null }]);
  expect([asked.code, asked.data]).toMatchObject([3, { status: "input_required", reply: "Which one?" }]);
  expect([sent.code, sent.data]).toMatchObject([0, { state: "completed", reply: "Echo: hello" }]);
  expect([streamed.code, streamed.stderr]).toEqual([0, expect.stringContaining("completed, final")]);
  expect(card.data.name).toBe("agent");
  expect([refused.code, refused.stderr]).toEqual([5, expect.not.stringContaining("wrong-key-here")]);
  expect([missing.code, missing.stderr]).toEqual([2, expect.stringContaining("deployment_missing")]);

  const id = deployed.data.id;
  expect((await json(["platform", "deployment", "get", id])).data).toMatchObject({ id, status: "DEPLOYED" });
  const updated = await run(["platform", "deployment", "update", id, "--body", body("fail", {})]);
  expect(updated.code).toBe(0);
  expect((await run(["platform", "deployment", "wait", id])).code).toBe(3);
  const { contextId, taskId } = sent.data;
  const later = await json(["platform", "a2a", "send", "more", "--context", contextId, "--task", taskId]);
  expect(later.data).toMatchObject({ contextId, reply: "Echo: more" });
  const task = await json(["platform", "a2a", "task", taskId, "--context", contextId]);
  expect(task.data).toMatchObject({ taskId, state: "completed" });
  standin.faults.script({ fault: { kind: "cut", framing: "chunked", at: "half" }, match: { path: "/a2a/" } });
  const cut = await run(["platform", "a2a", "stream", "hello"]);
  expect([cut.code, cut.stderr]).toEqual([6, expect.stringContaining("response_cut")]);
});

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
