import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../src/domain/time/stride.ts";
import { bench, dayOf, document, endOf, envOf, run as runWith } from "../support/program.ts";

test("a data start that is configured later is told, and one command moves it where nothing is lost", async () => {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const made = await bench({
    ...{ days: 6, workspaces: [1], hourlyForMs: HOUR_MS },
    standin: { dataStart: dayOf(today - 4 * DAY_MS) },
  });
  const [earlier, first, later] = [-1, 0, 1].map((days) => dayOf(made.dataStart + days * DAY_MS)) as [
    ...[string, string, string],
  ];
  const run = (args: string[], configured = first) =>
    runWith(args, { ...envOf(made), USAGE_DATA_START: configured, USAGE_HOURLY_FOR: "PT1H" });
  expect(endOf(await run(["data-start"]))).toEqual([2, "source_unknown"]);
  await made.sync();

  expect((await run(["status"])).stdout).not.toContain("data_start_later");
  expect((await run(["status"], later)).stdout.replaceAll(/\s+/g, " ")).toContain(
    `data-start ${later} --source default`,
  );
  expect(await run(["doctor"], later)).toMatchObject({
    code: 2,
    stdout: expect.stringContaining("[data_start_later]"),
  });
  expect(document(await run(["data-start", "--json"], later))).toMatchObject([
    {
      source: "default",
      dataStart: first,
      configured: later,
      problem: { code: "data_start_later" },
    },
  ]);

  const refused = await Promise.all([
    run(["data-start", later]),
    run(["data-start", earlier]),
    run(["data-start", dayOf(today + 2 * DAY_MS)], dayOf(today + 2 * DAY_MS)),
    run(["data-start", dayOf(today - DAY_MS)], dayOf(today - DAY_MS)),
    run(["data-start", later, "--source", "other"], later),
  ]);
  expect(refused.map(endOf)).toEqual([
    [2, "data_start_configured"],
    [2, "data_start_earlier"],
    [2, "data_start_future"],
    [2, "data_start_hides_usage"],
    [2, "source_unknown"],
  ]);
  expect((await run(["data-start", "2026-02-30"])).code).toBe(2);

  const moved = await run(["data-start", later, "--source", "default"], later);
  expect(moved).toMatchObject({ code: 0, stdout: expect.not.stringContaining("data_start_later") });
  expect((await run(["status"], later)).stdout).not.toContain("data_start_later");
  expect((await run(["doctor"], later)).code).toBe(0);
  expect(await run(["coverage", "--fail-on-gaps"], later)).toMatchObject({ code: 0 });
});
