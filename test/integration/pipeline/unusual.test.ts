import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { dayOf } from "../../../src/domain/time/days.ts";
import { DAY_MS, HOUR_MS } from "../../../src/domain/time/stride.ts";
import { raiseAlerts } from "../../../src/pipeline/alerts.ts";
import { describeUnusual, unusualLately } from "../../../src/pipeline/unusual.ts";
import { setupPages, textOf } from "../../support/pages.ts";
import { senderOn, setup } from "../../support/source.ts";

/** A day with far more traces than its weekday had is named with what made it, on pages and to the webhook, once. */

test("a planted spike is found with its project and key, shown on the pages, and sent to the webhook once", async () => {
  const bench = await setup({ days: 90, workspaces: [0, 1], hourlyForMs: HOUR_MS });
  const { sql, standin, today } = bench;
  const day = dayOf(today - 4 * DAY_MS);
  const sender = senderOn(standin, 0, Date.parse(day));
  sender.project.name = "<!channel>\n& co";
  await bench.sync();
  const before = await unusualLately(bench.store.db);
  expect(before.filter((one) => one.day === day)).toEqual([]);
  const [usual] = await sql<{ traces: number }>(
    "SELECT max(traces)::float8 AS traces FROM reporting.fct_usage_workspace_daily WHERE workspace_id = $1",
    [bench.workspaceIds[0]],
  );
  const more = Math.ceil(usual?.traces ?? 0) * 3;
  standin.ledger.change(sender, more);
  const range = { start: Date.parse(day), end: Date.parse(day) + DAY_MS };
  await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  const found = (await unusualLately(bench.store.db)).filter((one) => one.day === day);
  const [{ traces } = { traces: 0 }] = await sql<{ traces: number }>(
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
  for (const path of [
    "/",
    `/usage?source=default&from=${dayOf(today - 20 * DAY_MS)}&to=${dayOf(today)}&by=project`,
  ]) {
    const { text } = await pages.get(path);
    expect(text, path).toContain('<circle class="unusual"');
    expect(textOf(text), path).toContain(`${day}: ${traces.toLocaleString("en-US")} traces in workspace`);
  }
  // Another workspace had an ordinary day.
  const other = await pages.get(`/usage?source=default&by=project&workspace=${bench.workspaceIds[1]}`);
  expect(textOf(other.text)).not.toContain("an unusual day");

  const heard: { text: string; alerts: { alert: string }[] }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    heard.push(JSON.parse(Buffer.concat(chunks).toString("utf8")));
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const webhookUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  const raise = async () =>
    raiseAlerts(await bench.open(), { slug: "default", webhookUrl, staleAfterMs: HOUR_MS });
  await raise();
  await raise();
  const told = heard.filter(({ alerts }) => alerts.some(({ alert }) => alert === "unusual"));
  expect(told).toHaveLength(1);
  expect(told[0]?.text).toContain("of project &lt;!channel&gt;\\u000a&amp; co");
  // What made it is taken back: the day is as others.
  standin.ledger.change(sender, -more);
  await bench.fetch({ wanted: [{ stride: "day", range }], reprocess: "all" });
  await raise();
  expect((await unusualLately(bench.store.db)).filter((one) => one.day === day)).toEqual([]);
  if (before.every((one) => one.day < dayOf(today - 7 * DAY_MS)))
    expect(heard.at(-1)?.text).toContain("OK usage-etl default: no day of the last week is unusual.");
});
