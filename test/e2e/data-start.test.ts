import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../src/domain/time/stride.ts";
import { usageEtl } from "../support/cli.ts";
import { setup } from "../support/source.ts";

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);

test("a data start that is configured later is told, and one command moves it where nothing is lost", {
  timeout: 120_000,
}, async () => {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS;
  const bench = await setup({
    ...{ days: 6, workspaces: [1], hourlyForMs: HOUR_MS },
    standin: { dataStart: dayOf(today - 4 * DAY_MS) },
  });
  const env = {
    DATABASE_URL: bench.databaseUrl,
    USAGE_BASE_URL: bench.standin.url,
    USAGE_API_KEY: bench.standin.apiKey,
    USAGE_WORKSPACE_IDS: bench.workspaceIds.join(","),
    USAGE_DATA_START: dayOf(bench.dataStart),
    USAGE_HOURLY_FOR: "PT1H",
    USAGE_RATE_LIMIT: "1000",
  };
  const later = dayOf(bench.dataStart + DAY_MS);
  const run = (args: string[], configured = env.USAGE_DATA_START) =>
    usageEtl(args, { ...env, USAGE_DATA_START: configured });
  const codeOf = ({ code, stderr }: { code: number | null; stderr: string }) => [
    code,
    /\[(\w+)\]/.exec(stderr)?.[1],
  ];
  expect(codeOf(await run(["data-start"]))).toEqual([2, "source_unknown"]);
  await bench.sync();

  expect((await run(["status"])).stdout).not.toContain("data_start_later");
  expect((await run(["status"], later)).stdout.replaceAll(/\s+/g, " ")).toContain(
    `data-start ${later} --source default`,
  );
  expect(await run(["doctor"], later)).toMatchObject({
    code: 2,
    stdout: expect.stringContaining("[data_start_later]"),
  });
  expect(JSON.parse((await run(["data-start", "--json"], later)).stdout)).toMatchObject([
    {
      source: "default",
      dataStart: env.USAGE_DATA_START,
      configured: later,
      problem: { code: "data_start_later" },
    },
  ]);

  const refused = await Promise.all([
    run(["data-start", later]),
    run(["data-start", dayOf(bench.dataStart - DAY_MS)]),
    run(["data-start", dayOf(today + 2 * DAY_MS)], dayOf(today + 2 * DAY_MS)),
    run(["data-start", dayOf(today - DAY_MS)], dayOf(today - DAY_MS)),
    run(["data-start", later, "--source", "other"], later),
  ]);
  expect(refused.map(codeOf)).toEqual([
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
