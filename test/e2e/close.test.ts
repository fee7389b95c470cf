import { DateTime } from "luxon";
import { expect, test } from "vitest";
import { DAY_MS, floorToGrid, HOUR_MS } from "../../src/domain/time/stride.ts";
import { enterPrices } from "../support/charges.ts";
import { bench, document, endOf, envOf, run } from "../support/program.ts";
import { farFromTheNextHour } from "../support/source.ts";

test("close shows what is open, closes a reconciled month once, and refuses months it cannot close", async () => {
  // One instant for the whole test: midnight may pass while it runs.
  const now = await farFromTheNextHour();
  const today = floorToGrid(now, DAY_MS);
  const month = DateTime.fromMillis(today - 4 * DAY_MS, { zone: "utc" })
    .startOf("month")
    .minus({ months: 1 });
  const lastDays = month.plus({ months: 1 }).toMillis() - 6 * DAY_MS;
  const days = (today - lastDays) / DAY_MS;
  const made = await bench({ now, days, workspaces: [1, 2], hourlyForMs: HOUR_MS });
  const [kept = "", left = ""] = made.workspaceIds;
  const env = { ...envOf(made), USAGE_WORKSPACE_IDS: kept, USAGE_HOURLY_FOR: "PT1H" };
  const name = month.toFormat("yyyy-MM");
  const close = (...args: string[]) => run(["close", ...args, "--without-costs"], env);
  expect(endOf(await close(name))).toEqual([2, "source_unloaded"]);
  // One day of a workspace that the configuration does not name afterwards.
  const oneDay = { start: lastDays, end: lastDays + DAY_MS };
  await made.fetch({ wanted: [{ stride: "day", range: oneDay }], reprocess: "missing" });
  await made.sync({ config: { workspaceIds: [kept] } });
  // A source that was only tried does not block the close.
  await made.sql(
    "INSERT INTO usage.source (slug, base_url, data_start, hourly_hours, configuration_digest) VALUES ('tried', 'http://localhost', '2026-01-05', 1, '')",
  );

  const open = await close(name);
  expect(open).toMatchObject({ code: 4 });
  // Six days of one workspace, in each dimension.
  // And one day of another one, which the configuration does not name.
  expect(open.stdout).toMatch(/project +not reconciled with the export +7 /);
  expect(open.stdout).toMatch(/project +not loaded +5 /);
  for (const line of open.stdout.split("What to do:")[0]?.split("\n") ?? [])
    expect(line.trimEnd().length).toBeLessThanOrEqual(80);
  expect(open.stdout).toContain(
    `Workspace ${left} is not configured any more. Name it in USAGE_WORKSPACE_IDS again`,
  );
  const [shown] = document(await close(name, "--json")) as [{ open: { day: string }[] }];
  expect(shown.open.filter(({ day }) => !/^\d{4}-\d\d-\d\d$/.test(day))).toEqual([]);
  expect(shown.open.length).toBeGreaterThan(0);
  // Each command is run as it is printed.
  const [reconcile = "", load = "", closeWithout = ""] = commandsIn(open.stdout);
  expect(await run(reconcile.split(" "), env)).toMatchObject({ code: 0 });
  expect((await close(name)).code).toBe(4);
  expect(endOf(await close(name, "--without", "nobody"))).toEqual([2, "workspace_unknown"]);
  const both = { ...env, USAGE_WORKSPACE_IDS: `${kept},${left}` };
  expect(await run(load.split(" "), both)).toMatchObject({ code: 0 });
  // A price that begins later leaves all usage without one: a warning, no failure.
  await enterPrices(made.store, [{ unitPrice: "1", from: "9000-01-01" }]);
  const doctor = await run(["doctor"], env);
  expect([doctor.code, doctor.stdout.replaceAll(/\s+/g, " ")]).toEqual([
    0,
    expect.stringMatching(/warn costs \d+ days with [\d,]+ traces .* have no price, .* \[usage_unpriced\]/),
  ]);
  // The command that accepts a contradiction accepts nothing that is found after it was printed.
  const find = (id: string) =>
    made.sql(
      `INSERT INTO usage.control_difference
         (scope_id, kind, period_start, period_end, external_id, stored_traces, control_traces, state, fetch_number)
       SELECT c.scope_id, 'stride_total', $1, $2, $3, 1, 2, 'platform_disagrees', 1
       FROM usage.trace_scope c JOIN usage.entity e ON e.entity_id = c.workspace_id
       WHERE c.stride = 'day' AND c.group_by = 'project' AND e.external_id = $4`,
      [new Date(oneDay.start), new Date(oneDay.end), id, kept],
    );
  await find("p");
  const [accept = ""] = commandsIn((await run(closeWithout.split(" "), env)).stdout);
  expect(accept).toMatch(
    new RegExp(`^close ${name} --without-costs --accept-disagreements --without ${left} --expect \\w{64}$`),
  );
  await find("q");
  expect(endOf(await run(accept.split(" "), env))).toEqual([2, "month_changed"]);
  await made.sql("DELETE FROM usage.control_difference");
  const priced = closeWithout.replace(" --without-costs", "");
  expect(endOf(await run(priced.split(" "), env))).toEqual([2, "month_unpriced"]);
  const closed = await run([...closeWithout.split(" "), "--json"], env);
  const settleAfterSeconds = 3 * 86_400;
  expect([closed.code, document(closed)]).toMatchObject([
    0,
    [{ source: "default", state: "closed", accepted: 0, without: [left], settleAfterSeconds }],
  ]);
  const again = await close(name, "--without", left);
  expect([again.code, again.stdout]).toEqual([
    0,
    expect.stringMatching(new RegExp(`closed on .*, without ${left}; 0 totals were adjusted since`)),
  ]);
  // It was not closed as it is asked for now.
  expect(await close(name)).toMatchObject({
    code: 4,
    stdout: expect.stringContaining("a month closes once"),
  });

  const refused = await Promise.all([
    close("2026"),
    close(DateTime.utc().plus({ days: 1 }).toFormat("yyyy-MM")),
    close("2019-12"),
  ]);
  expect(refused.map(endOf)).toEqual([
    [2, "month_invalid"],
    [2, "month_not_over"],
    [2, "month_before_data"],
  ]);

  const totals = await run(["totals", "--json"], env);
  expect([totals.code, document(totals)]).toMatchObject([
    0,
    [{ source: "default", differences: 0, findings: [] }],
  ]);
});

function commandsIn(text: string): string[] {
  return [...text.matchAll(/`usage-etl ([^`]+)`/g)].map(([, command = ""]) => command);
}
