import { expect, test } from "vitest";
import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";
import { extractTask } from "../../../../src/core/pipeline/extract/extract.ts";
import { runInline } from "../../../../src/core/pipeline/extract/run-inline.ts";
import type { OpenSource } from "../../../../src/core/pipeline/source/source.ts";
import { planSource } from "../../../../src/core/pipeline/sync/plan.ts";
import { type Bench, setup } from "../../../support/source.ts";
import { dump, inStore } from "../../../support/tables.ts";

/** Rows that are gone from the platform are retired. Those that the key may no longer see are not: lost-access.test.ts. */

const notFinal = (bench: Bench) => ({ start: bench.today - 3 * DAY_MS, end: bench.today + DAY_MS });

test("a proof of access that was already being renewed does not count as newer", async () => {
  const { standin, open } = await setup({ workspaces: [0] });
  const source = await open();
  const listings = () =>
    standin.requests.recent.filter(({ url }) => url.startsWith("/api/v1/workspaces")).length;
  const before = listings();
  const first = source.access.renew();
  await Promise.all([first, source.access.renew(), source.access.renew()]);
  expect(listings() - before).toBe(2);
  await source.access.renew();
  expect(listings() - before).toBe(3);
});

test("an empty response that a second one contradicts retires nothing", async () => {
  const bench = await setup({ workspaces: [0] });
  await bench.sync();
  const before = await dump(bench);
  const { projects } = bench.standin.organisation;
  const source = await bench.open({ settings: { hourlyForMs: 0 } });
  for (const project of projects) project.dropped = true;
  const renew = source.access.renew;
  const tasks = await planSource(source, {
    wanted: [{ stride: "day", range: notFinal(bench) }],
    reprocess: "all",
  });
  const run = await runInline(
    {
      ...source,
      access: {
        ...source.access,
        renew: async () => {
          await renew();
          for (const project of projects) project.dropped = false;
        },
      },
    },
    tasks.slice(0, 1),
  );
  expect(run.failures).toEqual([]);
  expect(await dump(bench)).toEqual(before);
});

test("two responses that lack all records of different workspaces replace nothing, and the task fails", async () => {
  const bench = await setup({ workspaces: [0, 1] });
  await bench.sync();
  const before = await inStore(bench);
  const source = await bench.open();
  const range = { start: bench.dataStart, end: bench.today };
  const wanted = [{ stride: "day" as const, range }];
  const [task] = await planSource(source, { wanted, groupings: ["workspace"], reprocess: "all" });
  if (task === undefined) throw new Error("nothing was planned");
  expect(task.members).toHaveLength(2);

  let requested = 0;
  const usage: OpenSource["billing"]["usage"] = (query, io) => {
    const hidden = task.members[requested++]?.workspaceId;
    const onRecords: typeof io.onRecords = (records) =>
      io.onRecords(records.filter((record) => record.dimensionId !== hidden));
    return source.billing.usage(query, { ...io, onRecords });
  };
  const contradicted = { ...source, billing: { ...source.billing, usage } };
  expect(await extractTask(contradicted, task)).toMatchObject({
    outcome: "failed",
    code: "window_unconfirmed",
    requests: 2,
  });
  expect(await inStore(bench)).toEqual(before);
});
