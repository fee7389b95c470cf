import { expect, test } from "vitest";
import { extractTask } from "../../../../src/pipeline/extract/extract.ts";
import type { OpenSource } from "../../../../src/pipeline/source/source.ts";
import { planSource } from "../../../../src/pipeline/sync/plan.ts";
import { setup } from "../../../support/source.ts";
import { inStore } from "../../../support/tables.ts";

test("two answers that lack all records of different workspaces replace nothing, and the task fails", async () => {
  const bench = await setup({ workspaces: [0, 1] });
  await bench.sync();
  const before = await inStore(bench);
  const source = await bench.open();
  const range = { start: bench.dataStart, end: bench.today };
  const wanted = [{ stride: "day" as const, range }];
  const [task] = await planSource(source, { wanted, groupings: ["workspace"], reprocess: "all" });
  if (task === undefined) throw new Error("nothing was planned");
  expect(task.members).toHaveLength(2);

  let asked = 0;
  const usage: OpenSource["billing"]["usage"] = (query, io) => {
    const hidden = task.members[asked++]?.workspaceId;
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
