import { beforeEach, expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../src/core/base/secret.ts";
import type { Store } from "../../../src/core/store/db/database.ts";
import type { Condition } from "../../../src/features/alerts/conditions.ts";
import { notifyRoutes } from "../../../src/features/alerts/send-alerts.ts";
import { listRoutes } from "../../../src/features/owners/alert-routes.store.ts";
import { endWaits } from "../../../src/features/owners/notifications.store.ts";
import { setOwners } from "../../support/owners.ts";
import { type Manner, openReceivers } from "../../support/receivers.ts";
import { setupStore } from "../store/setup.ts";

let store: Store;
let query: <T>(text: string) => Promise<T[]>;
let manner: Manner;
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

function apply(...routes: readonly string[]) {
  const lines = routes.map(
    (name) => `  - { name: ${name}, type: webhook, secret: USAGE_ROUTE_${name.toUpperCase()} }`,
  );
  return setOwners(store, ["rules: []", "routes:", ...lines].join("\n"));
}

const REFUSED: Condition = {
  kind: "refused",
  owner: null,
  isFiring: true,
  severity: "critical",
  count: 1,
  newest: 0,
  message: "The platform refuses the key.",
  over: "the platform accepts the key again",
};

async function notify({ failure, isFiring = true }: { failure?: Error; isFiring?: boolean } = {}) {
  const [{ now } = { now: "" }] = await query<{ now: string }>("SELECT clock_timestamp()::text AS now");
  return notifyRoutes(
    { store, sourceId: 1 },
    { conditions: [{ ...REFUSED, isFiring }], readAt: now, routes: await listRoutes(store.db), failure },
    { slug: "default", secrets, clock: { wait: async () => {} } },
  );
}

const NOTHING = { notified: 0, ended: 0 };

test("the wait after failures doubles up to an hour, and ends once a message arrives", async () => {
  await apply("one");
  manner = "redirects";
  for (const minutes of [1, 2, 4, 8, 16, 32, 60, 60]) {
    await expect(notify()).rejects.toMatchObject({ code: "route_failed" });
    const sent = got.length;
    expect(await notify()).toEqual(NOTHING);
    expect(got).toHaveLength(sent);
    const [state] = await query<{ seconds: number }>(
      "SELECT extract(epoch FROM next_try_at - read_at)::float8 AS seconds FROM usage.route_state",
    );
    expect(state?.seconds).toBeGreaterThanOrEqual(minutes * 30);
    expect(state?.seconds).toBeLessThan(minutes * 60 + 20);
    await query("UPDATE usage.route_state SET next_try_at = now()");
  }
  manner = "well";
  expect(await notify()).toEqual({ notified: 1, ended: 0 });
  expect(await query("SELECT failures, next_try_at FROM usage.route_state")).toEqual([
    { failures: 0, next_try_at: null },
  ]);
});

test("an applied owner file and a test message that arrives end the wait of a route", async () => {
  await apply("one");
  manner = "redirects";
  const failAndWait = async () => {
    await expect(notify()).rejects.toMatchObject({ code: "route_failed" });
    expect(await notify()).toEqual(NOTHING);
  };
  await failAndWait();
  await apply("one", "well");
  await failAndWait();
  await endWaits(store.db, "well");
  expect(await notify()).toEqual(NOTHING);
  await endWaits(store.db, "one");
  await failAndWait();
});

test("a route without its setting waits like one that fails, and the others are notified", async () => {
  await apply("one", "well");
  secrets.delete("USAGE_ROUTE_ONE");
  await expect(notify()).rejects.toMatchObject({
    message: "Route one has no receiver: USAGE_ROUTE_ONE is not set here.",
  });
  expect(got).toEqual(["well"]);
  expect(await notify()).toEqual(NOTHING);
});

test("an error while conditions were read hides no failure of a route", async () => {
  await apply("one", "well");
  manner = "refuses";
  await expect(notify({ failure: new Error("Budgets are gone.") })).rejects.toMatchObject({
    code: "route_failed",
    message: "Budgets are gone. Route one responded with 503.",
  });
});
