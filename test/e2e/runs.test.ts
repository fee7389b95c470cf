import { expect, test } from "vitest";
import { bench, dayOf, document, envOf, run } from "../support/program.ts";

interface Run {
  readonly runId: number;
  readonly kind: string;
  readonly outcome: string;
  readonly requests: number | null;
  readonly failed: number;
  readonly code: string | null;
  readonly reason: string | null;
  readonly finishedAt: string | null;
}

const widest = (text: string) => Math.max(...text.split("\n").map((line) => line.length));

test("runs shows what each command did, with its requests and the reason where it failed; status shows the last sync", async () => {
  const made = await bench({ workspaces: [0] });
  const env = envOf(made);
  const range = ["--from", dayOf(made.dataStart), "--to", dayOf(made.dataStart + 3 * 86_400_000)];
  const none = await run(["runs"], env);
  expect([none.code, none.stdout]).toEqual([0, expect.stringContaining("Nothing ran yet")]);

  expect((await run(["sync", "--inline"], env)).code).toBe(0);
  const fetches = await made.sql<{ count: number }>("SELECT count(*)::integer FROM usage.fetch");
  expect((await run(["reconcile"], env)).code).toBe(0);
  expect((await run(["totals"], env)).code).toBe(0);
  const healthy = await run(["status", "--json"], env);
  const [{ freshness, ...shown }] = document(healthy) as [
    Record<string, never> & { freshness: { loadedUntil: string }[] },
  ];
  expect([healthy.code, shown]).toMatchObject([
    0,
    {
      ...{ source: "default", redis: null, workers: null, nextSync: null, alerts: [] },
      lastSync: { runId: 1, outcome: "done", failed: 0, requests: fetches[0]?.count, reason: null },
      days: [
        { stride: "day", missing: 0, failed: 0, unverified: 0 },
        { stride: "hour", missing: 0 },
      ],
    },
  ]);
  // A day under way is loaded until it was asked for.
  for (const { loadedUntil } of freshness) expect(Date.parse(loadedUntil)).toBeLessThanOrEqual(Date.now());

  const match = { path: "granular-usage", query: { group_by: "user" } };
  made.standin.faults.script({ fault: { kind: "status", status: 400 }, times: 10_000, match });
  expect((await run(["backfill", ...range, "--reprocess", "all", "--inline"], env)).code).toBe(3);
  made.standin.faults.script({ fault: { kind: "status", status: 502 }, times: 10_000 });
  expect((await run(["sync", "--inline"], env)).code).toBe(6);

  const listed = document(await run(["runs", "list", "--json"], env)) as Run[];
  expect(listed.map(({ kind, outcome }) => [kind, outcome])).toEqual([
    ["sync", "failed"],
    ["backfill", "partly_failed"],
    ["totals", "done"],
    ["reconcile", "done"],
    ["sync", "done"],
  ]);
  for (const one of listed) {
    expect(one.finishedAt).not.toBeNull();
    if (one.outcome !== "done")
      expect([one.code, one.reason]).toEqual([expect.stringMatching(/./), expect.stringMatching(/./)]);
  }
  const [sync, backfill] = listed;
  expect(sync).toMatchObject({ code: "server_error", requests: null });
  expect(backfill).toMatchObject({ code: "request_refused" });
  expect(backfill?.failed).toBeGreaterThan(0);

  const text = await run(["runs"], env);
  expect(widest(text.stdout)).toBeLessThanOrEqual(80);
  expect(text.stdout).toMatch(/backfill .*done, \d+ failed\n[\s\S]*\[request_refused\]/);
  const one = await run(["runs", "show", String(backfill?.runId)], env);
  expect([one.code, one.stdout]).toEqual([
    3,
    expect.stringMatching(/reason +\S.*[\s\S]*\[request_refused\]/),
  ]);
  expect(widest(one.stdout)).toBeLessThanOrEqual(80);
  expect((await run(["runs", "show", "99"], env)).stderr).toContain("[run_unknown]");

  // The platform is away: status shows what became of the last sync, and what it left.
  const outage = await run(["status"], env);
  expect([outage.code, widest(outage.stdout) <= 80]).toEqual([6, true]);
  expect(outage.stdout).toMatch(/^last sync .*: failed, 0 requests[\s\S]*\[server_error\]/m);
  expect(outage.stdout).toMatch(
    /^FAILED +\d+ ranges(, \d+ of them by hour,)? are failed with request_refused/m,
  );
});
