import { expect, test } from "vitest";
import { monthAt } from "../../../../src/core/domain/months/month.ts";
import { dayOf } from "../../../../src/core/domain/time/days.ts";
import { DAY_MS, HOUR_MS } from "../../../../src/core/domain/time/stride.ts";
import { changesOfMonth, describeLoggedChanges } from "../../../../src/features/costs/logged-changes.ts";
import { readBill } from "../../../../src/features/costs/read-bill.ts";
import { usageEtl } from "../../../support/cli.ts";
import { overHttp, response } from "../../../support/mcp.ts";
import { setupPages, setupViewer } from "../../../support/pages.ts";
import { setup } from "../../../support/source.ts";

const ALL = { settings: { meters: ["traces", "longlived"] } } as const;
const DAYS = 100;

async function setupRetention() {
  const bench = await setup({
    days: DAYS,
    workspaces: [0, 1],
    hourlyForMs: HOUR_MS,
    standin: { contract: "day-granular", hosting: "cloud", auditLog: "on" },
  });
  const { standin, today } = bench;
  const at = today - 22 * DAY_MS;
  const [workspace, other] = standin.organisation.workspaces;
  const streams = standin.organisation.streams.filter(({ project }) => project.workspace === workspace);
  const counts = (tier: "longlived" | null, day: number) =>
    streams.reduce((sum, one) => sum + (standin.ledger.counts(one, [day, day + DAY_MS], tier)[0] ?? 0), 0);
  const before = [1, 2, 3, 4].map((weeks) => counts("longlived", at - weeks * 7 * DAY_MS));
  for (const { project, user, key } of streams)
    for (let hour = at; hour < at + 2 * DAY_MS; hour += HOUR_MS)
      standin.ledger.upgrade({ project, user, key, at: hour }, 1_000_000);
  const change = (more: object) =>
    standin.bill.changes.push({
      at: at + 10 * HOUR_MS,
      operation: "update_ttl_settings",
      workspaceId: null,
      userId: streams[0]?.user?.id ?? null,
      succeeded: true,
      ...more,
    });
  await bench.sync(ALL);
  const read = async () => readBill(await bench.open(), { reach: "month", isPatient: false });
  const monthChanges = () => changesOfMonth(bench.store.db, { source: "default", month: monthAt(at) });
  const [usual, after] = [before.reduce((sum, one) => sum + one, 0) / before.length, counts("longlived", at)];
  return { ...bench, at, workspace, other, usual, after, change, read, monthChanges };
}

const days = (at: number) =>
  new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "long", timeZone: "UTC" });

test("a change of retention is beside the day on which long-lived traces stepped, and names no other figure", async () => {
  const bench = await setupRetention();
  const { at, workspace, other, usual, after } = bench;
  bench.change({});
  bench.change({ operation: "update_usage_limit", at: at + HOUR_MS, workspaceId: other?.id });
  bench.change({ operation: "create_gateway_policy", at: at - 3 * DAY_MS });
  expect(await bench.read()).toMatchObject({ parts: { audit_log: { refusal: null } }, failed: [] });

  const found = await bench.monthChanges();
  const steps = found.flatMap((one) => one.steps.map((step) => ({ ...step, operation: one.operation })));
  expect(steps).toEqual([
    {
      operation: "update_ttl_settings",
      measure: "longlived",
      workspaceId: workspace?.id,
      workspaceName: workspace?.name,
      day: dayOf(at),
      amount: after,
      expected: expect.closeTo(usual, -Math.log10(usual / 2)),
      isFinal: true,
    },
  ]);
  const [step] = steps;
  const text = `On ${days(at)} a retention setting was changed (update_ttl_settings). Long-lived traces of workspace ${workspace?.name} stepped from about ${Math.round(step?.expected ?? 0).toLocaleString("en-US")} a day to ${after.toLocaleString("en-US")} on ${days(at)}.`;
  expect(describeLoggedChanges(found)).toContain(text);

  const month = monthAt(at).name;
  const { stdout } = await usageEtl(["bill", month], { DATABASE_URL: bench.databaseUrl });
  expect(stdout).toContain(text);
  expect(stdout).toContain(`a usage limit was changed (update_usage_limit) in workspace ${other?.name}.`);
  const json = await usageEtl(["bill", month, "--json"], { DATABASE_URL: bench.databaseUrl });
  expect(JSON.parse(json.stdout)[0].changes).toHaveLength(found.length);

  const pages = await setupPages(bench);
  const page = await pages.get(`/months/${month}?source=default`);
  expect(page.text.replaceAll(/<[^>]+>/g, "")).toContain(text);
  const rows = (await pages.read("/timeline?kind=platform_change")).table("Timeline");
  expect(rows).toHaveLength(3);
  const mine = rows.find(({ What }) => What?.includes("update_ttl_settings"));
  // An operator sees the address of the user, and nobody else does.
  expect(mine?.Who).toContain("@");
  const viewer = await setupViewer(bench);
  const seen = await viewer.get("/timeline?kind=platform_change");
  expect(seen.text).toContain("update_ttl_settings");
  expect(seen.text).not.toContain("@");
  expect(seen.text).toContain(`user ${bench.standin.bill.changes[0]?.userId}`);
  const told = await response(await overHttp(pages.url), "why_changed", {
    from_day: dayOf(at - DAY_MS),
    to_day: dayOf(at + DAY_MS),
  });
  expect(JSON.stringify(told.changes)).toContain("update_ttl_settings");

  bench.change({ at: at - HOUR_MS, operation: "update_payment_plan" });
  bench.change({ at: at - 25 * HOUR_MS, operation: "delete_usage_limit" });
  expect(await bench.read()).toMatchObject({ parts: { audit_log: { read: 2 } } });
  const all = await bench.monthChanges();
  expect(all.find(({ operation }) => operation === "update_payment_plan")?.steps).toHaveLength(1);
  expect(all.find(({ operation }) => operation === "delete_usage_limit")?.steps ?? []).toEqual([]);
});
