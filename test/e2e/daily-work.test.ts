import { userInfo } from "node:os";
import { describe, expect, test } from "vitest";
import { DAY_MS } from "../../src/domain/time/stride.ts";
import { start } from "../support/cli.ts";
import { poll } from "../support/poll.ts";
import { eachRecord, startProxy } from "../support/proxy.ts";
import { differences, inStore } from "../support/tables.ts";
import { bench, dayOf, document, endOf, envOf, KEY, outputs, routine, run } from "./program.ts";

describe("the commands of a day", () => {
  test("sync, coverage, status, doctor, reconcile and backfill each print one JSON document and set their exit code", async () => {
    const made = await bench();
    const env = envOf(made);
    const quiet = async (args: string[], exit = 0) => {
      const ended = await run([...args, "--json"], env);
      expect([args.join(" "), ended.code, ended.stderr]).toEqual([args.join(" "), exit, ""]);
      return document(ended);
    };
    const synced = await quiet(["sync", "--inline"]);
    expect(synced).toMatchObject([{ source: "default", failures: [], counts: expect.any(Array) }]);
    expect(differences(await inStore(made), routine(made))).toEqual([]);

    expect(await quiet(["coverage", "--fail-on-gaps"])).not.toEqual([]);
    expect(await quiet(["status"])).toMatchObject([{ source: "default", refused: null, failures: [] }]);
    expect(await quiet(["doctor"])).toEqual(expect.arrayContaining([expect.objectContaining({ ok: true })]));
    expect(await quiet(["reconcile"])).toMatchObject([{ differences: [] }]);

    const first = dayOf(made.dataStart);
    const range = ["--from", first, "--to", dayOf(made.dataStart + DAY_MS)];
    await made.sql("UPDATE usage.dated_record SET traces = traces + 1 WHERE bucket_start = $1::date", [
      first,
    ]);
    const [mismatch] = (await quiet(["reconcile", ...range], 4)) as [{ differences: unknown[] }];
    expect(mismatch.differences.length).toBeGreaterThan(0);
    expect(await quiet(["reconcile", ...range, "--repair"])).toMatchObject([{ differences: [] }]);
    expect(differences(await inStore(made), routine(made))).toEqual([]);

    // A day's coverage and records are lost: a dry run counts the gap and a backfill fills it.
    await made.sql(
      `DELETE FROM usage.coverage c USING usage.trace_scope s
       WHERE s.scope_id = c.scope_id AND s.stride = 'day' AND period_start = $1`,
      [new Date(made.dataStart).toISOString()],
    );
    await made.sql("DELETE FROM usage.dated_record WHERE bucket_start = $1::date", [first]);
    await quiet(["coverage", "--fail-on-gaps"], 4);
    // One request by workspace; by project, user and key one for each of two workspaces.
    const { count: before } = made.standin.requests;
    const dry = await quiet(["backfill", ...range, "--dry-run"]);
    const day = { from: new Date(made.dataStart).toISOString().replace(".000Z", "Z") };
    expect(dry).toMatchObject([
      {
        ...{ source: "default", workspaces: 2, total: 7, windows: [{ stride: "day", requests: 7, ...day }] },
        loaded: expect.arrayContaining([
          expect.objectContaining({ groupBy: "user", status: "missing", buckets: 2, ...day }),
        ]),
      },
    ]);
    expect(await quiet(["plan", ...range])).toEqual(dry);
    const shown = await run(["plan", "--from", first, "--to", "2090-01-01"], envOf(made));
    expect(shown.stdout).toMatch(/ends in the future \(2090-01-01\)\. It is asked for until \S+\.\n/);
    expect(shown.stdout).toMatch(/user +day +missing +2 +\S+ +\S+\n/);
    for (const line of shown.stdout.split("\n")) expect(line.trimEnd().length).toBeLessThanOrEqual(80);
    expect(made.standin.requests.count).toBe(before);
    await quiet(["backfill", ...range, "--inline"]);
    const order = { via: "command", actor: userInfo().username };
    expect(
      await made.sql("SELECT action, via, actor, detail FROM usage.operator_action ORDER BY action_id"),
    ).toEqual([
      { ...order, action: "sync.start", detail: "inline" },
      {
        ...{ ...order, action: "reconcile.repair" },
        detail: expect.stringMatching(/^\S+ to \S+, workspace, project, user, api_key$/),
      },
      {
        ...{ ...order, action: "backfill.start" },
        detail: expect.stringMatching(
          /^inline: \S+ to \S+ by day, .*, 2 workspaces, missing, 7 fetch tasks$/,
        ),
      },
    ]);
    await quiet(["coverage", "--fail-on-gaps"]);
    expect(differences(await inStore(made), routine(made))).toEqual([]);
  });

  test("backfill refuses ranges without usage and unknown workspaces", async () => {
    const made = await bench({ workspaces: [0] });
    const env = envOf(made);
    const ends = await Promise.all(
      [
        ["--from", "2025-01-01", "--to", "2025-02-01"],
        ["--from", "2090-01-01", "--to", "2090-02-01"],
        ["--from", "2026-01-05", "--to", "2090-02-01", "--workspace", "11111111-1111-1111-1111-111111111111"],
      ].map((args) => run(["backfill", ...args, "--inline"], env)),
    );
    expect(ends.map(endOf)).toEqual([
      [2, "range_without_data"],
      [2, "range_without_data"],
      [2, "workspace_unknown"],
    ]);
  });

  test("a failed fetch task makes sync and status end with 3; the others are loaded", async () => {
    const made = await bench({ workspaces: [0] });
    const proxy = await startProxy(
      made.standin.url,
      eachRecord((record, url) =>
        url.searchParams.get("group_by") === "user" &&
        Date.parse(record.time_bucket) === made.dataStart &&
        record.traces > 0
          ? { ...record, traces: -record.traces }
          : record,
      ),
    );
    const env = { ...envOf(made), USAGE_BASE_URL: proxy.url };
    const synced = await run(["sync", "--inline", "--json"], env);
    expect(synced.code).toBe(3);
    expect(document(synced)).toMatchObject([{ failures: [{ code: "answer_invalid" }] }]);
    // The log on stderr is JSON lines.
    for (const line of synced.stderr.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("level");
    const status = await run(["status"], env);
    expect([status.code, status.stdout]).toEqual([3, expect.stringContaining("answer_invalid")]);
    expect((await run(["coverage", "--fail-on-gaps"], env)).code).toBe(4);
    const text = await run(
      ["backfill", "--from", "2026-01-05", "--to", "2090-01-01", "--reprocess", "all", "--inline"],
      env,
    );
    expect([text.code, text.stdout]).toEqual([3, expect.stringMatching(/failed: user day .*traces = -\d+/)]);
  });

  test("a refused key makes sync and then status end with 5; the debug log does not show it", async () => {
    const made = await bench({ workspaces: [0] });
    const env = { ...envOf(made), USAGE_LOG_LEVEL: "debug" };
    made.standin.faults.script({ fault: { kind: "reset" }, times: 2, skip: 3 });
    expect((await run(["sync", "--inline"], env)).code).toBe(0);
    const wrong = await run(["sync", "--inline"], { ...env, USAGE_API_KEY: `${KEY}wrong` });
    expect(wrong.code).toBe(5);
    expect(wrong.stderr).toMatch(/answered 401[\s\S]*USAGE_API_KEY[\s\S]*\[unauthorized\]/);
    const status = await run(["status"], env);
    expect([status.code, status.stdout]).toEqual([5, expect.stringContaining("refuses the key")]);
    expect((await run(["doctor", "--json"], { ...env, USAGE_API_KEY: `${KEY}wrong` })).code).toBe(5);
    expect((await run(["sync", "--inline"], env)).code).toBe(0);
    expect((await run(["status"], env)).code).toBe(0);
  });

  test("two syncs at the same time store the same as one", async () => {
    const made = await bench();
    const syncs = await Promise.all([1, 2].map(() => run(["sync", "--inline"], envOf(made))));
    expect(syncs.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ""],
      [0, ""],
    ]);
    expect(differences(await inStore(made), routine(made))).toEqual([]);
  });

  test("Ctrl-C ends a sync soon; what was loaded stays and the next sync completes it", async () => {
    const made = await bench({ workspaces: [0] });
    made.standin.faults.script({
      fault: { kind: "hang" },
      times: 1000,
      match: { path: "granular-usage", query: { group_by: "api_key" } },
    });
    const running = start(["sync", "--inline"], envOf(made));
    await poll(
      async () => (await made.sql("SELECT FROM usage.fetch WHERE group_by = 'api_key'")).length > 0,
      {
        deadlineMs: 20_000,
      },
    );
    running.process.kill("SIGINT");
    const ended = await running.ended;
    outputs.push(ended);
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("[interrupted]")]);
    made.standin.faults.clear();
    expect((await run(["sync", "--inline"], envOf(made))).code).toBe(0);
    expect(differences(await inStore(made), routine(made))).toEqual([]);
  });
});
