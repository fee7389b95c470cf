import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../src/config/secret.ts";
import { type Manner, openReceivers } from "../../../src/local/demo/receivers.ts";
import type { Condition } from "../../../src/pipeline/alerts/conditions.ts";
import { tellRoutes } from "../../../src/pipeline/alerts/tell.ts";
import { listRoutes, tryAtOnce } from "../../../src/store/activity/alert-routes.ts";
import { toldAlerts } from "../../../src/store/activity/alerts.ts";
import type { Store } from "../../../src/store/db/database.ts";
import { setOwners } from "../../support/owners.ts";
import { setupStore } from "../store/setup.ts";

/** When routes are sent to: after failures, and without a setting. */

let store: Store;
let query: <T>(text: string) => Promise<T[]>;
let manner: Manner;
/** Routes, in the order of what their receivers read. */
let got: string[];
let secrets: Map<string, Secret>;

beforeEach(async () => {
  const setup = await setupStore();
  store = setup.store;
  query = async (text) => (await setup.reader.query(text)).rows;
  await query(
    "INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest) VALUES ('default', 'http://platform.test', '2026-01-05', 24, '')",
  );
  manner = "well";
  got = [];
  const receivers = await openReceivers(({ path }) => {
    got.push(path.slice(1));
    return path === "/well" ? "well" : manner;
  });
  onTestFinished(receivers.close);
  secrets = new Map(
    ["one", "well"].map((name) => [
      `USAGE_ROUTE_${name.toUpperCase()}`,
      new Secret(`${receivers.webUrl}/${name}`),
    ]),
  );
});

/** Routes by name, each with what else the file says of it. */
const apply = (...routes: readonly string[]) => {
  const lines = routes.map((route) => {
    const setting = `USAGE_ROUTE_${route.split(",")[0]?.toUpperCase()}`;
    return `  - { name: ${route}, type: webhook, secret: ${setting} }`;
  });
  const content = ["rules: []", "routes:", ...lines].join("\n");
  return setOwners(store, content);
};

const REFUSED: Condition = {
  ...{ kind: "refused", owner: null, isFiring: true, severity: "critical", count: 1, newest: 0 },
  ...{ message: "The platform refuses the key.", over: "the platform takes the key again" },
};

/** Without a failure unless given. */
async function tell(given: Partial<Parameters<typeof tellRoutes>[1]> = {}) {
  const [{ now } = { now: "" }] = await query<{ now: string }>("SELECT clock_timestamp()::text AS now");
  return tellRoutes(
    { store, sourceId: 1 },
    {
      ...{ conditions: [REFUSED], readAt: now, routes: await listRoutes(store.db) },
      ...{ told: await toldAlerts(store.db, { sourceId: 1 }), ...given },
    },
    { slug: "default", secrets, clock: { wait: async () => {} } },
  );
}

const NOTHING = { told: 0, cleared: 0 };
const passHour = () => query("UPDATE usage.route_state SET tried_at = tried_at - interval '1 hour'");

test("the wait after failures doubles up to an hour, and ends once a message is taken", async () => {
  await apply("one");
  manner = "redirects";
  for (const minutes of [1, 2, 4, 8, 16, 32, 60, 60]) {
    await expect(tell()).rejects.toMatchObject({ code: "route_failed" });
    const asked = got.length;
    expect(await tell()).toEqual(NOTHING);
    expect(got).toHaveLength(asked);
    const [state] = await query<{ seconds: number }>(
      "SELECT extract(epoch FROM next_try_at - tried_at)::float8 AS seconds FROM usage.route_state",
    );
    expect(state?.seconds).toBeGreaterThanOrEqual(minutes * 30);
    // It begins when the try has ended.
    expect(state?.seconds).toBeLessThan(minutes * 60 + 20);
    await query("UPDATE usage.route_state SET next_try_at = now()");
  }
  manner = "well";
  expect(await tell()).toEqual({ told: 1, cleared: 0 });
  expect(await query("SELECT failures, next_try_at FROM usage.route_state")).toEqual([
    { failures: 0, next_try_at: null },
  ]);
});

test("an owner file that is applied and a message that is taken end the wait, one of another route does not", async () => {
  await apply("one");
  manner = "redirects";
  const fails = async () => {
    await expect(tell()).rejects.toMatchObject({ code: "route_failed" });
    expect(await tell()).toEqual(NOTHING);
  };
  await fails();
  await apply("one", "idle");
  await fails();
  await tryAtOnce(store.db, "idle");
  expect(await tell()).toEqual(NOTHING);
  await tryAtOnce(store.db, "one");
  await fails();
});

test("a route whose setting is missing is told of once an hour, and when the reason changes", async () => {
  await apply("one", "well");
  secrets.delete("USAGE_ROUTE_ONE");
  await expect(tell()).rejects.toMatchObject({
    message: "Route one has no receiver: USAGE_ROUTE_ONE is not set here.",
  });
  expect(got).toEqual(["well"]);
  expect(await tell()).toEqual(NOTHING);
  await passHour();
  await expect(tell()).rejects.toMatchObject({ code: "route_failed" });
  expect(await tell()).toEqual(NOTHING);
  secrets.set("USAGE_ROUTE_ONE", new Secret("sesame"));
  await expect(tell()).rejects.toMatchObject({ message: expect.stringContaining("is not of the form") });
  expect(await tell()).toEqual(NOTHING);
});
