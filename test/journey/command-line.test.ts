import { userInfo } from "node:os";
import { expect, test } from "vitest";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { bench, dayOf, document, envOf, run } from "../support/program.ts";
import { wrongFigures } from "../support/tables.ts";
import { temporaryFile } from "../support/temporary.ts";

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
  expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);

  expect(await quiet(["coverage", "--fail-on-gaps"])).not.toEqual([]);
  expect(await quiet(["status"])).toMatchObject([{ source: "default", refused: null, failures: [] }]);
  expect(await quiet(["doctor"])).toEqual(
    expect.arrayContaining([expect.objectContaining({ source: "default", status: "pass" })]),
  );
  expect(await quiet(["reconcile"])).toMatchObject([{ differences: [] }]);

  const first = dayOf(made.dataStart);
  const range = ["--from", first, "--to", dayOf(made.dataStart + DAY_MS)];
  await made.sql("UPDATE usage.dated_record SET traces = traces + 1 WHERE bucket_start = $1::date", [first]);
  const [mismatch] = (await quiet(["reconcile", ...range], 4)) as [{ differences: unknown[] }];
  expect(mismatch.differences.length).toBeGreaterThan(0);
  expect(await quiet(["reconcile", ...range, "--repair"])).toMatchObject([{ differences: [] }]);
  expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);

  await made.sql(
    `DELETE FROM usage.coverage c USING usage.trace_scope s
     WHERE s.scope_id = c.scope_id AND s.stride = 'day' AND period_start = $1`,
    [new Date(made.dataStart).toISOString()],
  );
  await made.sql("DELETE FROM usage.dated_record WHERE bucket_start = $1::date", [first]);
  await quiet(["coverage", "--fail-on-gaps"], 4);
  const { count: before } = made.standin.requests;
  const dry = await quiet(["backfill", ...range, "--dry-run"]);
  const day = { from: new Date(made.dataStart).toISOString().replace(".000Z", "Z") };
  expect(dry).toMatchObject([
    {
      source: "default",
      workspaces: 2,
      total: 7,
      windows: [{ stride: "day", requests: 7, ...day }],
      loaded: expect.arrayContaining([
        expect.objectContaining({ groupBy: "user", status: "missing", buckets: 2, ...day }),
      ]),
    },
  ]);
  expect(await quiet(["plan", ...range])).toEqual(dry);
  const shown = await run(["plan", "--from", first, "--to", "2090-01-01"], envOf(made));
  expect(shown.stdout).toMatch(/ends in the future \(2090-01-01\)\. It is requested until \S+\.\n/);
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
      ...order,
      action: "reconcile.repair",
      detail: expect.stringMatching(/^\S+ to \S+, workspace, project, user, api_key$/),
    },
    {
      ...order,
      action: "backfill.start",
      detail: expect.stringMatching(/^inline: \S+ to \S+ by day, .*, 2 workspaces, missing, 7 fetch tasks$/),
    },
  ]);
  await quiet(["coverage", "--fail-on-gaps"]);
  expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);
});

test("doctor --state names what somebody changed by hand, and the command that it names stores it anew", async () => {
  const made = await bench();
  const env = envOf(made);
  const prices = temporaryFile(
    "sku,unit_price,currency,valid_from\nTraces,0.005,USD,2026-01-01\n",
    "prices.csv",
  );
  const done = async (...args: string[]) => {
    const { code, stderr } = await run([...args, "--json"], env);
    expect([args.join(" "), code, stderr]).toEqual([args.join(" "), 0, ""]);
  };
  const wrong = async () => {
    const ended = await run(["doctor", "--state", "--json"], env);
    const notes = document(ended) as { status: string; check: string; hint: string }[];
    return notes.filter(({ status }) => status === "fail");
  };
  await done("sync", "--inline");
  await done("prices", "import", prices);
  await done("reconcile");
  expect(await wrong()).toEqual([]);

  await made.sql("UPDATE usage.price SET unit_price = unit_price * 2");
  const [price, ...others] = await wrong();
  expect(others).toEqual([]);
  expect(price).toMatchObject({ check: "charges", code: "charges_wrong" });
  expect(price?.hint).toContain("`usage-etl prices import FILE --replace`");
  await done("prices", "import", prices, "--replace");
  expect(await wrong()).toEqual([]);

  await made.sql("DELETE FROM usage.reconciled");
  const [proof, ...rest] = await wrong();
  expect(rest).toEqual([]);
  expect(proof).toMatchObject({ check: "proof", code: "proof_wrong" });
  expect(proof?.hint).toContain("`usage-etl reconcile`");
  await done("reconcile");
  expect(await wrong()).toEqual([]);
});
