import { expect, test } from "vitest";
import { HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { PROBE_TRACES } from "../../../src/features/probe/probe-meter.ts";
import { setupProbe as setup } from "../../support/probe.ts";

test("a right meter matches in every dimension", async () => {
  const { probe } = await setup();
  const sent: number[] = [];
  const result = await probe({ onTrace: (number) => sent.push(number) });
  expect(sent).toEqual([1, 2, 3, 4, 5, PROBE_TRACES]);
  expect(result).toMatchObject({
    state: "matched",
    expected: PROBE_TRACES,
    others: { added: 0, removed: 0 },
  });
  expect(result.figures.map(({ groupBy, billed, difference }) => [groupBy, billed, difference])).toEqual(
    ["workspace", "project", "user", "api_key"].map((by) => [by, 6, 0]),
  );
  expect(result.delayMs).toBe(0);
});

test("a probe stores nothing", async () => {
  const { probe, sql } = await setup();
  const stored = `SELECT (SELECT count(*) FROM usage.fetch) + (SELECT count(*) FROM usage.run)
                       + (SELECT count(*) FROM usage.dated_record) AS rows`;
  const before = await sql(stored);
  await probe();
  expect(await sql(stored)).toEqual(before);
});

test("the probe waits for a late meter and tells the delay", async () => {
  const { probe, standin, now } = await setup();
  // The ledger shows a row from its hour's beginning on, so at that very instant nothing is shown yet.
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  standin.setClock({ frozenAt: hour });
  const seen: number[] = [];
  const result = await probe({
    onReading: (billed) => {
      seen.push(billed);
      if (seen.length === 3) standin.setClock({ frozenAt: hour + 1 });
    },
  });
  expect(seen).toEqual([0, 0, 0, 6]);
  expect(result).toMatchObject({ state: "matched", delayMs: 3_500 });
});

test("traces that are never billed are a difference at the deadline", async () => {
  const { probe, standin, now, waits } = await setup();
  standin.setClock({ frozenAt: Math.floor(now / HOUR_MS) * HOUR_MS });
  const result = await probe({ within: 5_000 });
  expect(result).toMatchObject({ state: "differs", code: "probe_differs", delayMs: null });
  expect(waits.reduce((sum, ms) => sum + ms, 0)).toBe(5_000);
});

test("a deployment without A2A is probed by its runs", async () => {
  const { probe, standin } = await setup();
  standin.settings.http = { disable_a2a: true };
  const told: string[] = [];
  const onNoA2a = () => told.push("no A2A");
  const result = await probe({ onNoA2a, onTrace: (sent) => told.push(`trace ${sent}`) });
  expect(result).toMatchObject({ state: "matched", expected: 4 });
  expect(told).toEqual(["no A2A", "trace 1", "trace 2", "trace 3", "trace 4"]);
});

test("traffic that fails half way is not sent again", async () => {
  const { probe, standin } = await setup();
  standin.faults.script({ fault: { kind: "reset" }, match: { path: "/runs" }, skip: 3 });
  const sent: number[] = [];
  const failed = probe({ onTrace: (number) => sent.push(number) });
  await expect(failed).rejects.toMatchObject({ code: "network" });
  expect(sent).toEqual([1, 2]);
});

test("a run of the probe that somebody deletes gives no verdict", async () => {
  const { probe, deployment } = await setup();
  const { threads } = deployment;
  const join: typeof threads.join = async (run) => ({ ...run, status: "rolled_back" });
  const deleted = probe({ deployment: { ...deployment, threads: { ...threads, join } } });
  await expect(deleted).rejects.toMatchObject({ code: "probe_run_deleted" });
});

test("two projects of one name are refused before anything is sent", async () => {
  const { probe, standin, now } = await setup();
  const called = standin.organisation.projects.filter((one) => one.name === "default");
  expect(called.length).toBeGreaterThan(1);
  const key = standin.organisation.keys.at(-1) ?? null;
  for (const project of called) standin.ledger.change({ project, user: null, key, at: now }, 1);
  await expect(probe({ project: "default" })).rejects.toMatchObject({ code: "probe_project_ambiguous" });
  expect(standin.organisation.projects.some((one) => one.name === "agent-server")).toBe(false);
});
