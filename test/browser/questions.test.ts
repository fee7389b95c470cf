import { DateTime } from "luxon";
import { afterAll, beforeAll, expect, test } from "vitest";
import { inBrowser, openPage } from "../support/browser/page.ts";
import { story } from "../support/browser/screens.ts";
import { openStory } from "../support/browser/site.ts";

/** What people ask each day, answered from the overview with at most three clicks. Every answer is compared with SQL. */

inBrowser();

let site: Awaited<ReturnType<typeof openStory>>;
beforeAll(async () => {
  site = await openStory();
});
afterAll(() => site?.close());

/** A link by its name; or an option, which takes two clicks: the choice and Apply. */
type Click = RegExp | { readonly groupBy: string };

const closed = DateTime.fromMillis(story.month.start, { zone: "utc" });
const bill = new RegExp(`^${closed.toFormat("LLL yyyy")}$`);
const IN_MONTH = "usage_date >= date_trunc('month', now() AT TIME ZONE 'UTC')";
const IN_CLOSED = `period_start = '${closed.toISODate()}' AND group_by = 'workspace'`;

function largest(by: string, id = `${by}_id`): string {
  return `SELECT sum(traces) AS answer FROM reporting.fct_usage_${by}_daily WHERE ${IN_MONTH} AND ${id} NOT LIKE '(%'
    GROUP BY ${id} ORDER BY 1 DESC LIMIT 1`;
}

const sumOf = (rows: string) => `SELECT sum(traces) AS answer FROM reporting.${rows} AND ${IN_MONTH}`;
const difference = (column: string) =>
  `SELECT ${column} AS answer FROM reporting_detail.usage_reconciliation WHERE state = 'open' AND group_by = 'workspace'`;

const QUESTIONS: readonly [question: string, clicks: readonly Click[], answer: string][] = [
  ["how much was used so far", [], sumOf("fct_usage_workspace_daily WHERE true")],
  ["how much has no team", [], sumOf("fct_usage_owner_daily WHERE owner = '(unallocated)'")],
  [
    "what the bill of a closed month counts",
    [bill],
    `SELECT sum(closed_traces) AS answer FROM reporting_detail.fct_close WHERE ${IN_CLOSED}`,
  ],
  [
    "what changed since it was closed",
    [bill],
    `SELECT sum(adjustment_traces) AS answer FROM reporting_detail.fct_close WHERE ${IN_CLOSED}`,
  ],
  ["which workspace used most", [/^Usage$/], largest("workspace")],
  ["which project used most", [/^Usage$/, { groupBy: "project" }], largest("project")],
  ["which user used most", [/^Usage$/, { groupBy: "user" }], largest("user")],
  ["which key used most", [/^Usage$/, { groupBy: "API key" }], largest("api_key", "api_key_short_key")],
  ["what a team used", [/^Teams$/], sumOf("fct_usage_owner_daily WHERE owner <> '(unallocated)'")],
  [
    "why a day is red",
    [/^See why$/],
    "SELECT substring(max(message) FROM '\\m4[0-9]{2}\\M') AS answer FROM usage.failure",
  ],
  ["what we store where a figure differs", [/^Differences/], difference("max(stored_amount)")],
  ["what the platform says instead", [/^Differences/], difference("max(other_amount)")],
  ["how far a load is", [/^Loads$/], "SELECT count(*) || ' waiting' AS answer FROM usage.fetch_task"],
];

test.each(QUESTIONS)("%s", async (_question, clicks, query) => {
  const { page, go } = await openPage(site.url);
  await go("/");
  let count = 0;
  for (const click of clicks)
    if (click instanceof RegExp) {
      await page.getByRole("link", { name: click }).first().click();
      count += 1;
    } else {
      await page.getByLabel("Group by").selectOption({ label: click.groupBy });
      await page.getByRole("button", { name: "Apply" }).first().click();
      count += 2;
    }
  expect(count).toBeLessThanOrEqual(3);
  await page.waitForLoadState();
  const { rows } = await site.store.transaction(({ client }) => client.query<{ answer: string }>(query));
  const [{ answer } = { answer: "nothing" }] = rows;
  const shown = Number.isNaN(Number(answer)) ? answer : Number(answer).toLocaleString("en-US");
  expect(await page.textContent("main")).toContain(shown);
});
