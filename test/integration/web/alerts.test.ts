import { expect, onTestFinished, test } from "vitest";
import { Secret } from "../../../src/config/secret.ts";
import { HOUR_MS } from "../../../src/domain/time/stride.ts";
import { type Manner, openReceivers } from "../../../src/local/demo/receivers.ts";
import { raiseAlerts } from "../../../src/pipeline/alerts/tell.ts";
import { alertSettings } from "../../support/alerts.ts";
import { setOwners } from "../../support/owners.ts";
import { setupPages, textOf } from "../../support/pages.ts";
import { setup } from "../../support/source.ts";

test("a page shows what is wrong, who was told, and which route fails, without a secret", async () => {
  const bench = await setup({ days: 6, workspaces: [1], hourlyForMs: HOUR_MS });
  await bench.sync();
  const manners: Record<string, Manner> = { "/webhook": "well", "/slack": "lies" };
  const receivers = await openReceivers(({ path }) => manners[path.split("?")[0] ?? ""] ?? "well");
  onTestFinished(receivers.close);
  const environment = {
    USAGE_ROUTE_ALL: `${receivers.webUrl}/webhook?sesame`,
    USAGE_ROUTE_SLACK: `${receivers.webUrl}/slack`,
  };
  const pages = await setupPages(bench, { environment });
  const page = async () => textOf((await pages.get("/alerts")).text);
  expect(await page()).toMatch(/Nothing is wrong now\. Routes .*Nobody is told\./);
  const content = `rules: [{ owner: all }]
routes:
  - { name: all, type: webhook, secret: USAGE_ROUTE_ALL }
  - { name: team, type: slack, secret: USAGE_ROUTE_SLACK, kinds: [stale] }
  - { name: oncall, type: pagerduty, secret: USAGE_ROUTE_ONCALL, severities: [critical] }`;
  await setOwners(bench.store, content);
  await bench.sql("UPDATE usage.coverage SET fetched_at = now() - interval '2 hours'");
  expect(await page()).toMatch(/Stale default . critical Nothing was loaded for 2 h\. nobody/);
  const secrets = new Map(Object.entries(environment).map(([name, value]) => [name, new Secret(value)]));
  const settings = alertSettings(secrets);
  await expect(raiseAlerts(await bench.open(), settings)).rejects.toMatchObject({
    code: "route_failed",
    message:
      "Route team answered 200 with invalid_payload. Route oncall has no receiver: USAGE_ROUTE_ONCALL is not set here.",
  });
  const told = await page();
  expect(told).toMatch(/Nothing was loaded for 2 h\. all \d{4}-\d\d-\d\d \d\d:\d\d/);
  expect(told).toMatch(/all webhook everything \d{4}\S+ \S+ . arrived/);
  expect(told).toMatch(
    /team slack stale none yet . failed 1 time: it answered 200 with invalid_payload\. It is tried again at \d{4}-\d\d-\d\d \d\d:\d\d/,
  );
  expect(told).toMatch(
    /oncall pagerduty everything; only critical none yet . no receiver : USAGE_ROUTE_ONCALL is not set here/,
  );
  expect(told).not.toContain("Sent before");
  expect(told).not.toMatch(/sesame|127\.0\.0\.1/);
  await bench.sql("UPDATE usage.coverage SET fetched_at = now()");
  manners["/slack"] = "well";
  // The others were never told, so there is no end to tell.
  expect(await raiseAlerts(await bench.open(), settings)).toEqual({ told: 0, cleared: 1 });
  expect(await page()).toMatch(/Nothing is wrong now\..*Sent before .*Stale default all \d/);
});
