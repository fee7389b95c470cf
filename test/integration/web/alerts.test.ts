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
import { setupMigrated } from "../../support/store.ts";

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
  const open = async () => (await read()).text;
  const rows = async (name: string) => {
    const page = await read();
    return page.hasTable(name) ? page.table(name) : [];
  };
  const incident =
    /Stale · default \(critical\) Nothing was loaded for 2 h\. Sent to: (.*?) (?=Alert routes)/;
  const sent = async () => incident.exec(await open())?.[1]?.replace(/\d{4}-.*/, "at");
  expect(await sent()).toBeUndefined();
  // The routes are those of the owner file, with what the second one lacks.
  expect((await rows("Alert routes")).map(({ Route, Type }) => `${Route} ${Type}`)).toEqual([
    "all webhook",
    "team slack",
  ]);
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '2 hours'");
  expect(await sent()).toBe("nobody");
  await expect(send()).rejects.toMatchObject({ code: "route_failed" });
  expect(await sent()).toBe("all at");
  await bench.sql("UPDATE usage.coverage SET fetched_at = now()");
  manner = "well";
  // Route team was not notified of the beginning, so there is no end to send.
  expect(await send()).toEqual({ notified: 0, ended: 1 });
  expect(await sent()).toBeUndefined();
  expect(await rows("Resolved alerts")).toMatchObject([{ Type: "Stale", Source: "default" }]);
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '2 hours'");
  // The same incident again is not resolved, although a route was last notified of its end.
  expect(await rows("Resolved alerts")).toEqual([]);
});

test("before anything is loaded, nothing is said to be in order", async () => {
  const { store, url } = await setupMigrated();
  const standin = { url: "http://127.0.0.1:1", apiKey: "key" };
  const pages = await setupPages({ databaseUrl: url, standin, store });
  const { text } = await pages.read("/alerts");
  expect(text).not.toMatch(/no open/i);
  expect((await pages.read("/coverage")).text).not.toContain("USAGE_API_KEY");
});
