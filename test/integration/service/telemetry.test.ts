import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { poll } from "../../support/poll.ts";
import { end, setupService, syncsGoOn } from "../../support/service.ts";
import type { EndedSpan } from "../../support/telemetry.ts";
import { temporaryFile } from "../../support/temporary.ts";

const SDK = fileURLToPath(new URL("../../support/telemetry.ts", import.meta.url));
const [PRODUCER, CONSUMER] = [3, 4];

test("with USAGE_TELEMETRY the fetch of a task is a span, child of the span that enqueued it", async () => {
  const bench = await setupService({ days: 2, workspaces: 1 });
  const file = temporaryFile("");
  const spans = () =>
    readFileSync(file, "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line): EndedSpan => JSON.parse(line));
  const found = (isIt: (span: EndedSpan) => boolean) =>
    poll(() => spans().find(isIt), { deadlineMs: 10_000 }) as Promise<EndedSpan>;
  const sdk = { NODE_OPTIONS: `--import=${SDK}`, SPANS_FILE: file };
  const service = await bench.serve({ environment: { ...sdk, USAGE_TELEMETRY: "on" } });
  await bench.loaded();
  const work = await found(({ kind, name }) => kind === CONSUMER && name.includes("fetch-default"));
  expect(work).toMatchObject({
    scope: "usage-etl",
    attributes: { "bullmq.job.name": "extract", "bullmq.job.id": expect.stringMatching(/^\d+-\d+$/) },
  });
  expect(work.error).toBeUndefined();
  expect(await found(({ spanId }) => spanId === work.parentSpanId)).toMatchObject({
    kind: PRODUCER,
    traceId: work.traceId,
    attributes: { "bullmq.queue.name": "fetch-default" },
  });
  const control = spans().filter(({ kind, name }) => kind === CONSUMER && name.includes("control-default"));
  expect(control.map(({ attributes }) => attributes["bullmq.job.name"])).toContain("sync");
  expect(readFileSync(file, "utf8")).not.toContain(bench.standin.apiKey);

  expect(service.said.stdout).not.toContain("telemetry_unreceived");

  await end(service, "SIGTERM");
  writeFileSync(file, "");
  const untraced = await bench.serve({ environment: sdk });
  await syncsGoOn(untraced, 1);
  expect(spans()).toEqual([]);
  await end(untraced, "SIGTERM");

  const alone = await bench.serve({ environment: { USAGE_TELEMETRY: "on" } });
  await syncsGoOn(alone, 1);
  expect(alone.said.stdout).toContain('"code":"telemetry_unreceived"');
  expect(untraced.said.stdout).not.toContain("telemetry_unreceived");
});
