import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/domain/time/stride.ts";
import { GROUPINGS } from "../../../../src/domain/usage/record.ts";
import { workMessage } from "../../../../src/pipeline/extract/work-task.ts";
import { planSource } from "../../../../src/pipeline/sync/plan.ts";
import { createBackfill } from "../../../../src/store/work/backfills.ts";
import { takeTasksToQueue } from "../../../../src/store/work/tasks.ts";
import { dayOf, envOf, routine, run } from "../../../support/program.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { differences, inStore } from "../../../support/tables.ts";

/** `pg_restore --disable-triggers` changes records and leaves the digests that were made of others. */

const REPROCESS = {
  inline: async (bench: Bench) => {
    const range = ["--from", dayOf(bench.dataStart), "--to", dayOf(bench.today)];
    const ended = await run(["backfill", ...range, "--reprocess", "all", "--inline"], envOf(bench));
    expect([ended.code, ended.stderr]).toEqual([0, ""]);
  },
  queue: async (bench: Bench) => {
    const source = await bench.open();
    const { sourceId } = source;
    const range = { start: bench.dataStart, end: bench.today };
    const asked = { groupings: GROUPINGS, workspaceIds: bench.workspaceIds };
    const tasks = await planSource(source, {
      wanted: [{ stride: "day", range }],
      reprocess: "all",
      retry: "all",
    });
    await createBackfill(bench.store, {
      ...{ ...asked, sourceId, meter: "traces", range, stride: "day", reprocess: "all", tasks },
      by: { name: "test", role: "operator", via: "command" },
    });
    const messages = await bench.store.transaction(({ db }) =>
      takeTasksToQueue(db, { sourceId, most: 1000 }),
    );
    for (const message of messages)
      await workMessage({ ...source, attempts: 1 }, { ...message, isLastAttempt: true });
  },
};

test.each(["inline", "queue"] as const)(
  "a backfill of everything replaces what was restored past the triggers (%s)",
  async (way) => {
    const bench = await setup({ workspaces: [0] });
    await bench.sync();
    const whole = routine(bench);
    expect(differences(await inStore(bench), whole)).toEqual([]);
    await bench.store.transaction(async ({ client }) => {
      await client.query("SET LOCAL session_replication_role = replica");
      await client.query("UPDATE usage.dated_record SET traces = traces + 7 WHERE bucket_start < $1::date", [
        dayOf(bench.dataStart + 2 * DAY_MS),
      ]);
      await client.query("DELETE FROM usage.dated_record WHERE bucket_start = $1::date", [
        dayOf(bench.dataStart + 3 * DAY_MS),
      ]);
    });
    expect(differences(await inStore(bench), whole)).not.toEqual([]);
    await REPROCESS[way](bench);
    expect(differences(await inStore(bench), whole)).toEqual([]);
  },
);
