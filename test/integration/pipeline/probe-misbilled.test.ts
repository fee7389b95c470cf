import { describe, expect, test } from "vitest";
import { HOUR_MS } from "../../../src/domain/time/stride.ts";
import type { FaultOptions } from "../../../src/local/standin/faults.ts";
import { probeMeter } from "../../../src/pipeline/proof/probe.ts";
import { setupProbe } from "../../support/probe.ts";

/** The probe against a meter that drops, doubles, delays or misplaces traces, over HTTP. */

type Metering = NonNullable<FaultOptions["metering"]>[number]["fault"];

/** All traces of the next probe meet this fault. */
async function faulty(fault: Metering, times = 6) {
  const bench = await setupProbe({ timePasses: true });
  bench.standin.faults.set({ metering: [{ fault, times }] });
  const differencesOf = ({ figures }: Awaited<ReturnType<typeof bench.probe>>) =>
    Object.fromEntries(figures.map(({ groupBy, difference }) => [groupBy, difference]));
  return { ...bench, differencesOf };
}

const nothing = { workspace: 0, project: 0, user: 0, api_key: 0 };

test.each<[string, Metering, number, Partial<typeof nothing>]>([
  ["all traces billed to another user", { kind: "user" }, 6, { user: -6 }],
  ["one of six billed to another user", { kind: "user" }, 1, { user: -1 }],
  ["all traces billed to another key", { kind: "key" }, 6, { api_key: -6 }],
  ["two dropped traces", { kind: "drop" }, 2, { workspace: -2, project: -2, user: -2, api_key: -2 }],
])("%s are a difference", async (_, fault, times, differences) => {
  const { probe, differencesOf, sql } = await faulty(fault, times);
  const result = await probe({ withinMs: 1_000 });
  expect(result).toMatchObject({
    state: "differs",
    code: "probe_differs",
    delayMs: fault.kind === "drop" ? null : expect.any(Number),
  });
  expect(differencesOf(result)).toEqual({ ...nothing, ...differences });
  if (fault.kind !== "drop") return;
  expect(result.message).toContain("project: 4 billed, 2 too few");
  expect(await sql("SELECT state, billed_at FROM usage.probe")).toEqual([
    { state: "differs", billed_at: null },
  ]);
});

test.each(["user", "key", "project"] as const)("a difference names the %s that was billed", async (kind) => {
  const { probe, standin, sql } = await faulty({ kind });
  const { message, figures } = await probe({ withinMs: 1_000 });
  const { users, keys, projects } = standin.organisation;
  const billed = { user: users[0]?.id, key: keys[0]?.shortKey, project: projects.at(-1)?.id }[kind];
  const said = {
    user: `user: 6 billed, 6 too few for (none) (rose: ${billed} +6)`,
    key: `api_key: 6 billed, 6 too few for ...-key (rose: ${billed} +6)`,
    // The largest first: until the project is known, traffic of other workspaces is named too.
    project: `(rose: ${billed} +6`,
  };
  expect(message).toContain(said[kind]);
  if (kind === "project") expect(figures[1]?.difference).toBe(-6);
  if (kind !== "user") return;
  expect(
    await sql("SELECT expected_id, risen_ids FROM reporting_detail.metering_probe WHERE group_by = 'user'"),
  ).toEqual([{ expected_id: "(none)", risen_ids: `${billed} +6` }]);
});

test.each([0, 25])("a second bill %d s later is a difference", async (after_seconds) => {
  const { probe, differencesOf } = await faulty({ kind: "double", after_seconds });
  const started = Date.now();
  // As soon as it has stayed, though everything sent is billed.
  const result = await probe({ withinMs: 3_600_000 });
  expect(Date.now() - started).toBeLessThan(30_000);
  expect(result.state).toBe("differs");
  expect(differencesOf(result)).toEqual({ workspace: 6, project: 6, user: 6, api_key: 6 });
  // Nothing of it is still to come: a meter that doubles again is not taken for this one's late traces.
  expect(await probe()).toMatchObject({ state: "matched" });
});

test("billing later than the limit is a verdict of its own, with the delay", async () => {
  const { probe, sql } = await faulty({ kind: "late", seconds: 2 });
  const result = await probe({ lateAfterMs: 1 });
  expect(result).toMatchObject({ state: "late", code: "probe_late", lateAfterMs: 1 });
  expect(result.delayMs).toBeGreaterThan(1);
  expect(result.firstDelayMs).toBeGreaterThan(1);
  const [row] = await sql<object>(
    "SELECT DISTINCT state, delay_ms, first_delay_ms, late_after_ms FROM reporting_detail.metering_probe",
  );
  expect(row).toEqual({
    state: "late",
    delay_ms: result.delayMs,
    first_delay_ms: result.firstDelayMs,
    late_after_ms: 1,
  });
});

test("the first and the last trace's delay are told apart", async () => {
  const { probe } = await faulty({ kind: "late", seconds: 10 }, 1);
  const { state, delayMs, firstDelayMs } = await probe({ lateAfterMs: 60_000 });
  expect(state).toBe("matched");
  expect(delayMs).toBeGreaterThan(firstDelayMs ?? Number.POSITIVE_INFINITY);
});

test("a second bill after the settling time is not seen, which the setting decides", async () => {
  const { probe, waits } = await faulty({ kind: "double", after_seconds: 25 });
  expect(await probe({ settleForMs: 20_000 })).toMatchObject({ state: "matched" });
  expect(waits).toContain(20_000);
});

test("a second bill of another workspace is a difference where its projects do not account for it", async () => {
  const { probe, standin, now } = await setupProbe();
  const stream = standin.organisation.streams[0];
  if (stream === undefined) throw new Error("an empty organisation");
  const twice = { stride: "day", groupBy: "workspace", delta: 1, cell: { ...stream, at: now } } as const;
  const request = { withinMs: 1_000 };
  const result = await probe(request, () => standin.discrepancies.push(twice));
  expect(result).toMatchObject({ state: "differs", figures: [{}, {}, {}, {}] });
  expect(result.figures[0]?.difference).toBeGreaterThan(0);
  expect(result.message).toContain(`${stream.project.workspace.id} +`);
});

test("traffic of another workspace may show in its projects later", async () => {
  const { probe, standin, now } = await setupProbe();
  const stream = standin.organisation.streams[0];
  if (stream === undefined) throw new Error("an empty organisation");
  const cell = { ...stream, at: now };
  let looks = 0;
  const result = await probe({}, () => {
    looks++;
    if (looks === 1) standin.discrepancies.push({ stride: "day", groupBy: "workspace", delta: 1, cell });
    if (looks !== 4) return;
    standin.discrepancies.length = 0;
    standin.ledger.change(cell, 1);
  });
  expect(looks).toBeGreaterThan(4);
  expect(result.state).toBe("matched");
});

describe("with other traffic in the workspace", () => {
  /** Others send as much as the probe, as nobody and with its key or another: in sums that looks like the probe. */
  async function busy(fault?: Metering, isOwnKey = true) {
    const { standin, now, ...bench } = await setupProbe();
    if (fault !== undefined) standin.faults.set({ metering: [{ fault, times: 6 }] });
    const [seeded, ...rest] = standin.organisation.projects;
    const workspace = standin.organisation.workspaces[4];
    if (seeded === undefined || workspace === undefined) throw new Error("an empty organisation");
    const project = { ...seeded, id: rest.length.toString().padStart(36, "0"), workspace };
    let sent = false;
    const result = await bench.probe({}, () => {
      if (sent) return;
      sent = true;
      const key = (isOwnKey ? ownKey(standin) : standin.organisation.keys[1]) ?? null;
      standin.ledger.change({ project, user: null, key, at: now }, 6);
    });
    return { ...bench, standin, result };
  }
  const ownKey = ({ organisation }: Awaited<ReturnType<typeof setupProbe>>["standin"]) =>
    organisation.keys.find(({ shortKey }) => shortKey.endsWith("-key"));

  test.each([
    ["is right", undefined],
    ["bills another user", { kind: "user" }],
    ["bills another key", { kind: "key" }],
  ] as const)("nothing is called matched where the meter %s", async (_, fault) => {
    const { result } = await busy(fault);
    expect(result).toMatchObject({ state: "inconclusive", code: "probe_undecided" });
    expect(result.figures.map(({ groupBy, othersAdded }) => [groupBy, othersAdded])).toEqual([
      ["workspace", 6],
      ["project", 0],
      ["user", 6],
      ["api_key", 6],
    ]);
    expect(result.message).toContain(
      "other projects of the workspace rose by 6 and fell by 0 traces meanwhile",
    );
    expect(result.message).toContain("Not decided: to which user and API key");
    // All of it is billed, so a later surplus is not taken for its late traces.
    expect(result.delayMs).not.toBeNull();
  });

  test("what cannot be others' traffic is a difference", async () => {
    const { result } = await busy({ kind: "key" }, false);
    expect(result).toMatchObject({ state: "differs" });
    expect(result.message).toContain("6 too few for ...-key");
  });
});

test("a configured user and key are expected in place of nobody and the configured key", async () => {
  const bench = await setupProbe();
  const { users, keys } = bench.standin.organisation;
  const config = { probeUser: `${users[0]?.id}`, probeShortKey: `${keys[0]?.shortKey}` };
  const source = await bench.open({ config: { ...bench.source.config, ...config } });
  const request = { ...bench.request, settleForMs: 1_000 };
  const wrong = await probeMeter(source, request);
  expect(wrong.state).toBe("differs");
  expect(wrong.message).toContain(`user: 6 billed, 6 too few for ${config.probeUser} (rose: (none) +6)`);
  expect(wrong.message).toContain(
    `api_key: 6 billed, 6 too few for ${config.probeShortKey} (rose: sk...-key +6)`,
  );
  bench.standin.faults.set({ metering: [{ fault: { kind: "user" }, times: 6 }] });
  const right = await probeMeter(
    await bench.open({ config: { ...bench.source.config, probeUser: config.probeUser } }),
    request,
  );
  expect(right.state).toBe("matched");
});

test("a process that goes on with a probe keeps what was seen, and says what nobody saw", async () => {
  const { open, standin, sql, request, now } = await setupProbe();
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  standin.setClock({ frozenAt: hour });
  const stop = new AbortController();
  const limited = { ...request, lateAfterMs: 30_000 };
  const first = probeMeter(await open({ signal: stop.signal }), limited, () => stop.abort(new Error("stop")));
  await expect(first).rejects.toThrow("stop");
  // As if it had been away for a minute: long before the limit something was missing, long after it all is there.
  await sql(
    `UPDATE usage.probe SET sent_at = sent_at - interval '1 min', unbilled_at = unbilled_at - interval '1 min'`,
  );
  standin.setClock({ frozenAt: hour + 1 });
  const result = await probeMeter(await open(), { ...request, settleForMs: 1_000 });
  expect(result).toMatchObject({ state: "inconclusive", code: "probe_undecided", lateAfterMs: 30_000 });
  expect(result.message).toContain("Not decided: whether that was late");
});
