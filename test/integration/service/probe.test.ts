import { expect, test } from "vitest";
import { schedulesOf } from "../../../jobs/schedule.ts";
import { readConfig } from "../../../src/config/config.ts";
import { poll } from "../../support/poll.ts";
import { metricsOf, setupService } from "../../support/service.ts";

const PROBED = { deploymentUrl: "http://127.0.0.1:9", probeProject: "probe" };

test("the meter probe is off by default, and is never retried", () => {
  const config = readConfig({});
  const often = { ...config, probeEveryMs: 60_000 };
  const off = { deploymentUrl: undefined, probeProject: undefined };
  const jobsOf = (...given: Parameters<typeof schedulesOf>) => schedulesOf(...given).map(({ job }) => job);
  expect([...jobsOf(config, PROBED), ...jobsOf(often, off)]).not.toContain("probe");
  const [probe] = schedulesOf(often, PROBED);
  expect(probe).toMatchObject({ job: "probe", repeat: { every: 60_000 }, options: { attempts: 1 } });
});

test("a scheduled meter probe is recorded and shown in the metrics", async () => {
  const bench = await setupService({ days: 1 });
  const running = await bench.serve({
    environment: {
      USAGE_DEPLOYMENT_URL: bench.standin.url,
      USAGE_PROBE_PROJECT: "agent-server",
      USAGE_PROBE_EVERY: "PT1M",
      USAGE_PROBE_SETTLE_FOR: "PT1S",
      USAGE_SYNC_EVERY: "PT1H",
    },
  });
  const verdicts = "SELECT count(*)::integer FROM reporting_detail.metering_probe WHERE state = 'matched'";
  await poll(async () => (await bench.value<number>(verdicts)) >= 4, { deadlineMs: 90_000, everyMs: 200 });
  const metrics = await metricsOf(running);
  expect(metrics).toContain('usage_etl_probe_difference_traces{source="default",group_by="project"} 0');
  expect(metrics).toContain('usage_etl_probe_verdict{source="default",state="matched"} 1');
  expect(metrics).toMatch(/usage_etl_probe_delay_seconds\{source="default"\} \d/);
  expect(metrics).toMatch(/usage_etl_probe_last_timestamp_seconds\{source="default"\} \d{10}/);
});
