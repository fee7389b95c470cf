import { expect, test } from "vitest";
import { fetchQueueOf } from "../../../jobs/queues.ts";
import { poll } from "../../support/poll.ts";
import { logOf, setupService } from "../../support/service.ts";

test("a job whose data does not parse fails with its reason, and the others go on", async () => {
  const bench = await setupService({ days: 2, workspaces: 2 });
  const queue = await bench.openQueue("fetch");
  await queue.add("extract", { task: "no number" }, { jobId: "old" });
  await queue.add("no-such-job", {}, { jobId: "unknown" });
  await queue.add("extract", {}, { jobId: "deep" });
  await bench.redis.hset(
    queue.toKey("deep"),
    "data",
    `{"taskId":${"[".repeat(30_000)}${"]".repeat(30_000)}}`,
  );
  await fetchQueueOf(queue).add([{ taskId: 999_999, generation: 1, routine: true }]);
  const service = await bench.serve();
  await bench.loaded();
  await poll(() => logOf(service).filter((line) => line.msg === "job failed").length >= 3, {
    deadlineMs: 20_000,
  });
  const failed = logOf(service).filter((line) => line.msg === "job failed");
  expect(new Set(failed.map(({ code }) => code))).toEqual(new Set(["job_data_invalid", "job_unknown"]));
  expect(failed.find(({ code }) => code === "job_data_invalid")?.reason).toContain("extract");
});
