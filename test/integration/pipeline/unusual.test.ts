import { sql } from "kysely";
import { expect, test } from "vitest";
import { addDays, dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS, HOUR_MS } from "../../../src/core/domain/time/stride.ts";
import { sendAlerts } from "../../../src/features/alerts/send-alerts.ts";
import { describeUnusual, unusualLately } from "../../../src/features/figures/unusual.ts";
import { alertSettings, startWebhook } from "../../support/alerts.ts";
import { overHttp, response } from "../../support/mcp.ts";
import { setupPages } from "../../support/pages.ts";
import { addSource, WORKSPACES } from "../../support/reporting.ts";
import { senderOn, setup } from "../../support/source.ts";
import { loadRows, type ResponseRow, setupMigrated, windowOf } from "../../support/store.ts";

const [WORKSPACE] = WORKSPACES;
const PROJECTS = [1, 2].map((n) => `00000000-0000-4000-8000-0000000000a${n}`) as [string, string];

test("a planted spike is found with its project and key, shown on the pages and to AI clients, and sent to the webhook once", async () => {
  const bench = await setup({ days: 90, workspaces: [0, 1], hourlyForMs: HOUR_MS });
  const { standin, today } = bench;
  const names = standin.organisation.projects.filter(
    ({ workspace }) => workspace === standin.organisation.workspaces[0],
  );
  for (const [n, project] of names.entries()) project.name = `<!channel>\n& co ${n}`;
  await bench.sync();
  // Its own history may have unusual days.
  const before = await unusualLately(bench.store.db);
  const day = [4, 5, 6, 7, 8]
    .map((ago) => dayOf(today - ago * DAY_MS))
    .find((one) => before.every((found) => found.day !== one)) as string;
  const sender = senderOn(standin, 0, Date.parse(day));
  const [usual] = await bench.sql<{ traces: number }>(
    "SELECT max(traces)::float8 AS traces FROM reporting.fct_usage_workspace_daily WHERE workspace_id = $1",
    [bench.workspaceIds[0]],
  );
  const more = Math.ceil(usual?.traces ?? 0) * 3;
  standin.ledger.change(sender, more);
  const range = { start: Date.parse(day), end: Date.parse(day) + DAY_MS };
  await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  const found = (await unusualLately(bench.store.db)).filter((one) => one.day === day);
  const [{ traces } = { traces: 0 }] = await bench.sql<{ traces: number }>(
    "SELECT traces::float8 AS traces FROM reporting.fct_usage_workspace_daily WHERE workspace_id = $1 AND usage_date = $2",
    [bench.workspaceIds[0], day],
  );
  expect(found).toMatchObject([
    {
      source: "default",
      workspaceId: bench.workspaceIds[0],
      amount: traces,
      isFinal: true,
      because: [
        { by: "project", id: sender.project.id, name: sender.project.name },
        { by: "user", id: sender.user?.id },
        { by: "api_key", id: sender.key?.shortKey },
      ],
    },
  ]);
  const [one] = found as typeof found & [(typeof found)[0]];
  for (const part of one.because) expect(Math.abs(part.more / more - 1)).toBeLessThan(0.2);
  const says = describeUnusual(one);
  expect(says).toContain(`${day}: ${traces.toLocaleString("en-US")} traces in workspace`);
  expect(says).toContain(`Most of the difference is of project ${sender.project.name}`);

  const pages = await setupPages(bench);
  expect((await pages.read("/")).text).toContain(`${traces.toLocaleString("en-US")} traces (expected`);
  const path = `/usage?source=default&from=${dayOf(today - 20 * DAY_MS)}&to=${dayOf(today)}&by=project`;
  expect((await pages.read(path)).bars.join()).toContain(
    `Unusual: ${day}: ${traces.toLocaleString("en-US")} traces in workspace`,
  );
  const [status] = (await response(await overHttp(pages.url), "status")).sources;
  expect(status.unusual_days).toContain(says);
  const { bars } = await pages.read(`/usage?source=default&by=project&workspace=${bench.workspaceIds[1]}`);
  expect(bars.join()).not.toContain(`Unusual: ${day}`);

  const { secrets, heard } = await startWebhook();
  const raise = async () => sendAlerts(await bench.open(), alertSettings(secrets));
  await raise();
  await raise();
  const told = heard.filter(({ alerts }) => alerts.some(({ alert }) => alert === "unusual"));
  expect(told).toHaveLength(1);
  expect(told[0]?.text).toContain("of project &lt;!channel&gt;\\u000a&amp; co ");
  standin.ledger.change(sender, -more);
  await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  expect((await unusualLately(bench.store.db)).filter((one) => one.day === day)).toEqual([]);
});

async function flat(given: Readonly<Record<number, readonly [a: number, b: number]>>) {
  const { store } = await setupMigrated();
  const [{ today } = { today: "" }] = (
    await sql<{ today: string }>`select (now() at time zone 'UTC')::date::text as today`.execute(store.db)
  ).rows;
  const first = addDays(today, -100);
  const sourceId = await addSource(store, { slug: "default", workspaceIds: [WORKSPACE], dataStart: first });
  const load = async (groupBy: "workspace" | "project", from: number, to: number) => {
    const days = Array.from({ length: from - to }, (_, n) => from - n);
    const used = (ago: number) => given[ago] ?? [600, 400];
    await loadRows(store, {
      sourceId,
      groupBy,
      workspaceId: WORKSPACE,
      window: windowOf("day", addDays(today, -from), addDays(today, -to)),
      rows: days.flatMap((ago): ResponseRow[] => {
        const [a, b] = used(ago);
        const day = addDays(today, -ago);
        if (groupBy === "workspace") return [[day, WORKSPACE, a + b, "Research"]];
        return [
          [day, PROJECTS[0], a, "a"],
          [day, PROJECTS[1], b, "b"],
        ];
      }),
    });
  };
  await load("workspace", 100, 0);
  return { store, sourceId, load, today };
}

test("what makes a day unusual is named against what is expected of it, whatever other days had, and only where it is loaded", async () => {
  const { store, load, today } = await flat({ 11: [600, 25_400], 4: [100, 400] });
  await load("project", 100, 4);
  await load("project", 3, 0);
  const days = async () =>
    (await unusualLately(store.db)).map(({ day, because }) => [day, because.map(({ name }) => name)]);
  const day = (ago: number) => addDays(today, -ago);
  expect(await days()).toEqual([
    [day(11), ["b"]],
    [day(4), []],
  ]);
  await load("project", 4, 3);
  expect(await days()).toEqual([
    [day(11), ["b"]],
    [day(4), ["a"]],
  ]);
});
