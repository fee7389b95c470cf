import { expect, test } from "vitest";
import { usageEtl } from "../../support/cli.ts";
import { addHost, startServersForHosts, withoutHosts } from "../../support/hosts.ts";
import { poll } from "../../support/poll.ts";
import { daysAgo, jobsDone, setupService } from "../../support/service.ts";

const SUMS = `SELECT string_agg(x::text, ' ' ORDER BY x) FROM (
    SELECT c.group_by, w.external_id, sum(r.traces), count(*) FROM usage.trace_scope c
    JOIN usage.entity w ON w.entity_id = c.workspace_id
    JOIN usage.series s USING (scope_id)
    JOIN usage.hourly_record r USING (series_id)
    WHERE r.bucket_start < date_trunc('day', now()) - interval '5 days'
    GROUP BY 1, 2
  ) x`;
/** After so long Postgres closes connections to a host that is gone. */
const GIVEN_UP_MS = 27_000;
const FETCHED_AT_ONCE = 4;
const waitingOf = (address: string) => `SELECT count(*)::integer AS sessions FROM pg_stat_activity
  WHERE client_addr = '${address}' AND wait_event_type = 'Lock'
    AND query LIKE '%from usage.scope%for no key update%'`;

const reason = withoutHosts();
if (reason !== undefined) process.stderr.write(`skipped: workers on two hosts (${reason})\n`);

test.skipIf(reason !== undefined)(
  "one of two hosts finishes the backfill of the other, which was cut off and comes back later, with equal totals",
  async () => {
    const servers = await startServersForHosts();
    const bench = await setupService({
      days: 26,
      servers, // Syncs leave most of the rate limit, and of a busy machine, to the backfill.
      environment: { USAGE_RATE_LIMIT: "200", USAGE_SYNC_EVERY: "PT30S" },
    });
    const [lost, kept] = [addHost(1), addHost(2)];
    const [gone, other] = await Promise.all(
      [lost, kept].map(({ address, within }) => bench.serve({ within, environment: { HTTP_HOST: address } })),
    );
    if (gone === undefined || other === undefined) throw new Error("two workers");
    const range = ["--from", daysAgo(22), "--to", daysAgo(8), "--stride", "hour"];
    await bench.createBackfill(...range);
    const count = (states: string) =>
      bench.count(
        `SELECT count(*) FROM usage.fetch_task WHERE backfill_id IS NOT NULL AND state IN (${states})`,
      );
    const jobsOf = (worker: typeof gone) => jobsDone(worker, "extract");
    await poll(async () => (await count("'done'")) > 30, { deadlineMs: 60_000, everyMs: 50 });
    expect(jobsOf(gone)).toBeGreaterThan(0);

    const before = await bench.store.transaction(async ({ client }) => {
      // As another load locks them: reads go on, and so does what a fetch writes before its load. A load begins by locking its scopes.
      await client.query("SELECT FROM usage.scope ORDER BY scope_id FOR NO KEY UPDATE");
      await poll(
        async () =>
          (await client.query("SELECT")) &&
          (await bench.value<number>(waitingOf(lost.address))) >= FETCHED_AT_ONCE,
        { deadlineMs: 20_000 },
      );
      lost.cutOff();
      const since = performance.now();
      await poll(async () => (await client.query("SELECT")) && performance.now() - since > GIVEN_UP_MS, {
        deadlineMs: 40_000,
        everyMs: 500,
      });
      return jobsOf(other);
    });
    // None of them delays the other host, though they have just got their locks.
    await poll(() => jobsOf(other) > before + 20, { deadlineMs: 15_000, everyMs: 50 });
    const twin = await setupService({ days: 26 });
    const inline = await usageEtl(["backfill", ...range, "--inline"], {
      ...twin.environment,
      USAGE_BASE_URL: bench.standin.url,
    });
    expect(inline.code).toBe(0);
    const state = "SELECT state FROM usage.backfill";
    await poll(async () => (await bench.value(state)) === "done", { deadlineMs: 150_000, everyMs: 100 });
    expect(await count("'failed', 'waiting', 'queued'")).toBe(0);
    expect(await bench.value(SUMS)).toBe(await twin.value(SUMS));

    const early = jobsOf(gone);
    lost.reconnect();
    other.process.kill("SIGTERM");
    await bench.createBackfill("--from", daysAgo(7), "--to", daysAgo(3), "--stride", "hour");
    const ended = "SELECT bool_and(state = 'done') FROM usage.backfill";
    await poll(async () => jobsOf(gone) > early + 5 && (await bench.value(ended)), {
      deadlineMs: 120_000,
      everyMs: 100,
    });
    expect(gone.process.exitCode).toBeNull();
  },
);
