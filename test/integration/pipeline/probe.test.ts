import { expect, onTestFinished, test, vi } from "vitest";
import { HOUR_MS } from "../../../src/domain/time/stride.ts";
import { PlatformError, UsageError } from "../../../src/errors.ts";
import { PROBE_TRACES, type ProbeProgress, probeMeter } from "../../../src/pipeline/proof/probe.ts";
import { type DeploymentClients, deploymentClientsOf } from "../../../src/platform/clients.ts";
import { agentServer, drip } from "../../support/agent-server.ts";
import { ownProject, setupProbe as setup } from "../../support/probe.ts";

/** The probe against a meter that is right, late, wrong, busy or away. */

/** The deployment's clients, with something done before each run is created. */
function withEachRun(deployment: DeploymentClients, work: () => unknown): DeploymentClients {
  const { threads } = deployment;
  return {
    ...deployment,
    threads: {
      ...threads,
      createRun: async (...given) => {
        await work();
        return threads.createRun(...given);
      },
    },
  };
}

const once = (work: () => void) => {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    work();
  };
};

test("a right meter matches in every dimension, and BI tools see the verdict", async () => {
  const { probe, sql, standin } = await setup();
  const progress: ProbeProgress[] = [];
  const result = await probe({}, (one) => progress.push(one));
  expect(result).toMatchObject({ state: "matched", expected: PROBE_TRACES, resumed: false });
  expect(result.figures.map(({ groupBy, billed, difference }) => [groupBy, billed, difference])).toEqual(
    ["workspace", "project", "user", "api_key"].map((by) => [by, 6, 0]),
  );
  expect(result.delayMs).toBeGreaterThanOrEqual(0);
  expect(progress.at(-1)).toMatchObject({ billed: 6, expected: 6 });
  await sql("SET ROLE usage_reader");
  const rows = await sql<Record<string, unknown>>(
    "SELECT * FROM reporting_detail.metering_probe ORDER BY group_by",
  );
  await sql("RESET ROLE");
  const { id, workspace } = ownProject(standin);
  expect(rows).toHaveLength(4);
  expect(rows[1]).toMatchObject({
    source_id: "default",
    group_by: "project",
    state: "matched",
    project_id: id,
    workspace_id: workspace.id,
    expected_traces: 6,
    billed_traces: 6,
    others_added: 0,
    difference: 0,
    code: null,
  });
  expect(await sql("SELECT DISTINCT purpose, outcome FROM usage.fetch")).toEqual([
    { purpose: "probe", outcome: "compared" },
  ]);
  // Again: what the first one was billed is not taken for this one's.
  expect(await probe()).toMatchObject({ state: "matched", expected: 6 });
});

test("the probe waits for a late meter and records the delay", async () => {
  const { probe, standin, now } = await setup();
  // The ledger shows a row from its hour's beginning on, so at that very instant nothing is shown yet.
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  standin.setClock({ frozenAt: hour });
  const seen: number[] = [];
  const result = await probe({}, ({ billed }) => {
    seen.push(billed);
    if (seen.length === 3) standin.setClock({ frozenAt: hour + 1 });
  });
  expect(seen.slice(0, 4)).toEqual([0, 0, 0, 6]);
  expect(result).toMatchObject({ state: "matched", figures: [{ billed: 6 }, {}, {}, {}] });
  expect(result.delayMs).toBeGreaterThan(0);
});

test("a surplus that may be an earlier probe's late traces gives no verdict", async () => {
  const { probe, rebill } = await setup();
  expect(
    (
      await probe(
        { withinMs: 1_000 },
        once(() => rebill(-1)),
      )
    ).state,
  ).toBe("differs");
  const result = await probe(
    {},
    once(() => rebill(1)),
  );
  expect(result).toMatchObject({ state: "inconclusive", code: "probe_earlier_late" });
});

test("a deployment without A2A is probed by its runs", async () => {
  const { probe, standin } = await setup();
  standin.settings.http = { disable_a2a: true };
  expect(await probe()).toMatchObject({ state: "matched", expected: 4 });
});

test("traffic that failed half way gives no verdict with the reason, and is not sent again", async () => {
  const { probe, standin, sql } = await setup();
  // The first run is created, joined and looked at; this is the second one's creation.
  standin.faults.script({ fault: { kind: "reset" }, match: { path: "/runs" }, skip: 3 });
  const result = await probe();
  expect(result).toMatchObject({ state: "inconclusive", code: "network", figures: [] });
  expect(result.cause).toBeInstanceOf(PlatformError);
  expect(await sql("SELECT state, expected_traces FROM usage.probe")).toMatchObject([
    { state: "inconclusive" },
  ]);
  expect(await probe()).toMatchObject({ state: "matched" });
});

/** Timers of so many milliseconds fire sooner. */
function shortenTimers(from: number, to: number, after = 50): void {
  const real = setTimeout;
  const shorter = (work: () => void, ms = 0) => real(work, ms >= from && ms <= to ? after : ms);
  const spied = vi.spyOn(globalThis, "setTimeout").mockImplementation(shorter as typeof setTimeout);
  onTestFinished(() => spied.mockRestore());
}

test("a run of the probe that somebody deletes gives no verdict", async () => {
  const { probe, deployment } = await setup();
  const { threads } = deployment;
  const join: typeof threads.join = async (run) => ({ ...run, status: "rolled_back" });
  const result = await probe({ deployment: { ...deployment, threads: { ...threads, join } } });
  expect(result).toMatchObject({ state: "inconclusive", code: "probe_run_deleted", expected: 1 });
});

test("a stream that only sends comments ends the probe's traffic in time", async () => {
  const { probe, deployment, source } = await setup();
  const { url } = await agentServer((response) =>
    drip(response, { piece: ": x\n\n", type: "text/event-stream" }),
  );
  const { a2a } = deploymentClientsOf({ ...source.config, deploymentUrl: url });
  onTestFinished(() => a2a.close());
  // Long enough for what is sent before the stream, on a busy machine too.
  shortenTimers(120_000, 120_000, 2000);
  const result = await probe({
    deployment: { ...deployment, a2a: { ...deployment.a2a, stream: a2a.stream } },
  });
  expect(result).toMatchObject({ state: "inconclusive", code: "deadline_passed", expected: 6 });
});

test("usage that is never answered ends the wait", async () => {
  const { source, request } = await setup();
  let isSent = false;
  const billing: typeof source.billing = {
    ...source.billing,
    usage: (query, io) =>
      isSent
        ? new Promise((_, fail) => io.signal?.addEventListener("abort", () => fail(io.signal?.reason)))
        : source.billing.usage(query, io),
  };
  const { a2a } = request.deployment;
  const stream: typeof a2a.stream = async function* (...given) {
    // Whoever has the reply may not read on.
    try {
      yield* a2a.stream(...given);
    } finally {
      isSent = true;
    }
  };
  // The last look.
  shortenTimers(300_000, 300_001);
  const result = await probeMeter(
    { ...source, billing },
    { ...request, withinMs: 1, deployment: { ...request.deployment, a2a: { ...a2a, stream } } },
  );
  expect(result).toMatchObject({ state: "inconclusive", code: "probe_unanswered" });
});

test("a refused deployment does not stop the source", async () => {
  const { probe, standin, sql } = await setup();
  standin.faults.script({ fault: { kind: "status", status: 403 }, match: { path: "/threads" } });
  expect(await probe()).toMatchObject({ state: "inconclusive", code: "forbidden", expected: 0 });
  expect(await sql("SELECT refused_at FROM usage.source")).toEqual([{ refused_at: null }]);
});

test("two projects of one name are refused before anything is sent", async () => {
  const { probe, standin, now } = await setup();
  const called = standin.organisation.projects.filter((one) => one.name === "default");
  expect(called.length).toBeGreaterThan(1);
  // Whatever the hour, each has been used today.
  const key = standin.organisation.keys.at(-1) ?? null;
  for (const project of called) standin.ledger.change({ project, user: null, key, at: now }, 1);
  await expect(probe({ project: "default" })).rejects.toThrow(
    `${called.length} projects are called "default"`,
  );
  expect(standin.organisation.projects.some((one) => one.name === "agent-server")).toBe(false);
});

test("an interrupted wait leaves the probe to the next process, which sends nothing", async () => {
  const { open, standin, sql, request, now } = await setup();
  const hour = Math.floor(now / HOUR_MS) * HOUR_MS;
  standin.setClock({ frozenAt: hour });
  const stop = new AbortController();
  const first = await open({ signal: stop.signal });
  await expect(probeMeter(first, request, () => stop.abort(new Error("stop")))).rejects.toThrow("stop");
  expect(await sql("SELECT state, expected_traces FROM usage.probe")).toEqual([
    { state: "waiting", expected_traces: 6 },
  ]);
  standin.setClock({ frozenAt: hour + 1 });
  // Both begin before either has ended: the first answer waits until both have asked.
  const asked = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const [one, other] = await Promise.all(
    asked.map(async ({ resolve }) => {
      const { billing, ...next } = await open();
      const usage: typeof billing.usage = async (...given) => {
        resolve();
        await Promise.all(asked.map(({ promise }) => promise));
        return billing.usage(...given);
      };
      return probeMeter({ ...next, billing: { ...billing, usage } }, request);
    }),
  );
  for (const result of [one, other])
    expect(result).toMatchObject({ state: "matched", resumed: true, expected: 6 });
  expect(one?.probeId).toBe(other?.probeId);
  expect(await sql("SELECT count(*)::integer AS figures FROM usage.probe_figure")).toEqual([{ figures: 4 }]);
});

test("probes run one at a time, and one that a dead process left while sending ends without a comparison", async () => {
  const { probe, deployment, request, sql, source, open } = await setup();
  let second: unknown;
  const meanwhile = async () => {
    second ??= await probeMeter(await open(), request).catch((error: unknown) => error);
  };
  expect((await probe({ deployment: withEachRun(deployment, meanwhile) })).state).toBe("matched");
  expect(second).toBeInstanceOf(UsageError);
  expect(second).toMatchObject({ code: "probe_under_way" });

  await sql(
    "INSERT INTO usage.probe (source_id, project, expected_user, expected_key, period_start) VALUES ($1, 'x', 'u', 'k', date_trunc('day', now()))",
    [source.sourceId],
  );
  await expect(probe()).rejects.toMatchObject({ code: "probe_under_way" });
  await sql("UPDATE usage.probe SET started_at = now() - interval '21 minutes' WHERE state = 'sending'");
  expect((await probe()).state).toBe("matched");
  expect(await sql("SELECT code FROM usage.probe WHERE state = 'inconclusive'")).toEqual([
    { code: "probe_interrupted" },
  ]);
});

test("the probe waits for a platform that is away for a while", async () => {
  const { probe, standin } = await setup();
  const result = await probe(
    {},
    once(() => standin.faults.script({ fault: { kind: "status", status: 503 }, times: 12 })),
  );
  expect(result.state).toBe("matched");
});

test("a platform that goes away before the figures have stayed gives no verdict", async () => {
  const { probe, standin } = await setup();
  const away = { fault: { kind: "status", status: 503 }, times: 100_000 } as const;
  const result = await probe(
    { withinMs: 700 },
    once(() => standin.faults.script(away)),
  );
  expect(result).toMatchObject({
    state: "inconclusive",
    code: "probe_unanswered",
    delayMs: expect.any(Number),
  });
});
