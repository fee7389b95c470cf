import { expect, test } from "vitest";
import { DAY_MS } from "../../src/domain/time/stride.ts";
import { bench, document, envOf, run } from "../support/program.ts";
import { senderOn } from "../support/source.ts";

test("reconcile and totals say what they compared, and exit by what is left in the range", async () => {
  const made = await bench({ workspaces: [0], days: 8 });
  const env = { ...envOf(made), USAGE_HOURLY_FOR: "P7D" };
  expect((await run(["sync", "--inline"], env)).code).toBe(0);
  const text = async (args: string[], code: number) => {
    const ended = await run(["reconcile", ...args], env);
    expect([args.join(" "), ended.code, ended.stderr]).toEqual([args.join(" "), code, ""]);
    return ended.stdout;
  };
  const clean = await text([], 0);
  expect(clean).toMatch(/^day: [\d,]+ records compared with the export in 4 windows, 0 differences left$/m);
  expect(clean).toMatch(
    /^hour: [\d,]+ records compared with the export in \d+ windows, 0 differences left$/m,
  );
  expect(clean).toMatch(/^not compared: stride day, 12 daily figures: provisional$/m);

  // A count moves within its day: days agree, hours do not.
  const sender = senderOn(made.standin, 0, made.dataStart + DAY_MS);
  made.standin.ledger.change(sender, -1);
  made.standin.ledger.change(
    {
      ...sender,
      at: sender.at > made.dataStart + 1.5 * DAY_MS ? sender.at - 3_600_000 : sender.at + 3_600_000,
    },
    1,
  );
  expect(await text(["--stride", "day"], 0)).toContain(
    "not compared: stride hour. Run reconcile with --stride hour",
  );
  expect(await text([], 4)).toMatch(/^hour: .* 8 differences left$/m);
  expect(await text(["--stride", "day"], 0)).toContain("8 differences found earlier are left there.");
  expect(await text(["--repair"], 0)).toContain("8 differences fetched again, 8 repaired, 0 withdrawn");

  // A day of the range is not loaded any more.
  await made.sql(
    `DELETE FROM usage.coverage c USING usage.trace_scope s
     WHERE s.scope_id = c.scope_id AND s.stride = 'day' AND s.group_by = 'user'`,
  );
  expect(await text(["--stride", "day"], 3)).toMatch(
    /^not compared: stride day, 5 daily figures: not loaded;/m,
  );
  const totals = await run(["totals", "--json"], env);
  expect([totals.code, document(totals)]).toMatchObject([3, [{ daysNotFinal: 5, daysDisproved: 0 }]]);
});
