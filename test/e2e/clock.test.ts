import { Redis } from "ioredis";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { usageEtl } from "../support/cli.ts";
import { now } from "../support/clock.ts";
import { serviceUrl } from "../support/services.ts";

/** Proves `npm run test:clock` too: a process that kept the real time would be months away. */
test("Postgres, Redis and started programs have the clock of the tests", async () => {
  const postgres = new pg.Client({ connectionString: await serviceUrl("postgres") });
  const redis = new Redis(await serviceUrl("redis"), { retryStrategy: null });
  onTestFinished(async () => {
    await Promise.all([postgres.end(), redis.quit()]);
  });
  await postgres.connect();
  const { rows } = await postgres.query<{ at: Date }>("SELECT clock_timestamp() AS at");
  const [seconds] = await redis.time();
  // The shell asks for the time in the place of the program, with what the program would get.
  const { stdout } = await usageEtl([], {}, { within: ["/bin/sh", "-c", "date +%s"] });
  for (const at of [rows[0]?.at.getTime() ?? 0, Number(seconds) * 1_000, Number(stdout) * 1_000]) {
    expect(Math.abs(now() - at)).toBeLessThan(60_000);
  }
});
