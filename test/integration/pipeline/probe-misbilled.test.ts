import { expect, test } from "vitest";
import type { FaultOptions } from "../../../src/features/standin/engine/faults.ts";
import { setupProbe } from "../../support/probe.ts";
import { beginProject } from "../../support/source.ts";

/** The probe against a meter that drops, doubles, delays or misplaces traces, over HTTP. */

type Metering = NonNullable<FaultOptions["metering"]>[number]["fault"];

async function faulty(fault: Metering, { times = 6, timePasses = true } = {}) {
  const bench = await setupProbe({ timePasses });
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
  ["two dropped", { kind: "drop" }, 2, { workspace: -2, project: -2, user: -2, api_key: -2 }],
])("%s are a difference", async (_, fault, times, differences) => {
  const { probe, differencesOf } = await faulty(fault, { times });
  const result = await probe();
  expect(result).toMatchObject({ state: "differs", code: "probe_differs" });
  expect(differencesOf(result)).toEqual({ ...nothing, ...differences });
});

test.each(["user", "key", "project"] as const)("a difference names the %s that was billed", async (kind) => {
  // Time stands still: until its project is known, the probe names the traffic of other workspaces too.
  const { probe, standin } = await faulty({ kind }, { timePasses: false });
  const { message } = await probe();
  const { users, keys, projects } = standin.organisation;
  const billed = { user: users[0]?.id, key: keys[0]?.shortKey, project: projects.at(-1)?.id }[kind];
  const said = {
    user: `user: 6 billed, 6 too few for (none) (rose: ${billed} +6)`,
    key: `api_key: 6 billed, 6 too few for ...-key (rose: ${billed} +6)`,
    project: `project: 0 billed, 6 too few (rose: ${billed} +6)`,
  };
  expect(message).toContain(said[kind]);
});

test.each([0, 25])("a second bill %d s later is a difference", async (after_seconds) => {
  const { probe, differencesOf, source } = await faulty({ kind: "double", after_seconds });
  const started = source.clock.now();
  const result = await probe({ within: 3_600_000 });
  expect(result.state).toBe("differs");
  expect(differencesOf(result)).toEqual({ workspace: 6, project: 6, user: 6, api_key: 6 });
  // As soon as it has stayed, though everything sent is billed.
  expect(source.clock.now() - started).toBe(60_000);
});

test("other traffic in the workspace leaves it undecided to whom the traces were billed", async () => {
  const { probe, standin, now } = await setupProbe();
  let isSent = false;
  const result = await probe({
    onReading: () => {
      if (!isSent) beginProject(standin, { workspace: 4, at: now, traces: 6 });
      isSent = true;
    },
  });
  const undecided = { state: "inconclusive", code: "probe_undecided", others: { added: 6, removed: 0 } };
  expect(result).toMatchObject(undecided);
});

test("the user and key of the request are expected", async () => {
  const { probe, standin } = await setupProbe();
  const [user, key] = [`${standin.organisation.users[0]?.id}`, `${standin.organisation.keys[0]?.shortKey}`];
  const { state, message } = await probe({ user, key });
  expect(state).toBe("differs");
  expect(message).toContain(`user: 6 billed, 6 too few for ${user} (rose: (none) +6)`);
  expect(message).toContain(`api_key: 6 billed, 6 too few for ${key} (rose: sk...-key +6)`);
});
