import { expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../src/core/base/secret.ts";
import { HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { sendAlerts } from "../../../src/features/alerts/send-alerts.ts";
import { alertSettings } from "../../support/alerts.ts";
import { readPage } from "../../support/dom.ts";
import { setOwners } from "../../support/owners.ts";
import { setupPages } from "../../support/pages.ts";
import { type Manner, openReceivers } from "../../support/receivers.ts";
import { setup } from "../../support/source.ts";

test("the page lists open incidents with the routes that were notified, then past ones", async () => {
  const bench = await setup({ days: 6, workspaces: [1], hourlyForMs: HOUR_MS });
  await bench.sync();
  let manner: Manner = "lies";
  const receivers = await openReceivers(({ path }) => (path === "/slack" ? manner : "well"));
  onTestFinished(receivers.close);
  const secrets = new Map([
    ["USAGE_ROUTE_ALL", new Secret(`${receivers.webUrl}/webhook?sesame`)],
    ["USAGE_ROUTE_SLACK", new Secret(`${receivers.webUrl}/slack`)],
  ]);
  await setOwners(
    bench.store,
    `rules: [{ owner: all }]
routes:
  - { name: all, type: webhook, secret: USAGE_ROUTE_ALL }
  - { name: team, type: slack, secret: USAGE_ROUTE_SLACK, kinds: [stale] }`,
  );
  const pages = await setupPages(bench);
  const read = async () => readPage((await pages.get("/alerts")).text);
  const send = async () => sendAlerts(await bench.open(), alertSettings(secrets));
  expect((await read()).text).toContain("No open incident.");
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '2 hours'");
  const incident = {
    Kind: "Stale",
    Source: "default",
    Severity: "critical",
    What: "Nothing was loaded for 2 h.",
  };
  expect((await read()).table("Open incidents")).toEqual([{ ...incident, Notified: "nobody" }]);
  await expect(send()).rejects.toMatchObject({ code: "route_failed" });
  const arrived = expect.stringMatching(/^all \d{4}-/);
  expect((await read()).table("Open incidents")).toEqual([{ ...incident, Notified: arrived }]);
  await bench.sql("UPDATE usage.coverage SET fetched_at = now()");
  manner = "well";
  // Route team was not notified of the beginning, so there is no end to send.
  expect(await send()).toEqual({ notified: 0, ended: 1 });
  const page = await read();
  expect(page.hasTable("Open incidents")).toBe(false);
  expect(page.table("Past incidents, the last of each kind")).toEqual([
    { Kind: "Stale", Source: "default", "Ended, by route": arrived },
  ]);
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '2 hours'");
  // The same incident again is not past, although a route was last notified of its end.
  expect((await read()).hasTable("Past incidents, the last of each kind")).toBe(false);
});
