import { createServer } from "node:http";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { listenInTest } from "../../support/listen.ts";
import { poll } from "../../support/poll.ts";
import { end, setupService, syncsGoOn } from "../../support/service.ts";

/** Spans of the service as an OTLP receiver gets them over HTTP. */

const SDK = fileURLToPath(new URL("../../support/telemetry.ts", import.meta.url));
/** OTLP's numbers. */
const [PRODUCER, CONSUMER] = [4, 5];

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly kind: number;
  readonly scope: string;
  readonly attributes: { key: string; value: { stringValue: string } }[];
}

async function startReceiver() {
  const spans: Span[] = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const piece of request) text += piece;
    for (const { scopeSpans } of JSON.parse(text).resourceSpans) {
      for (const scope of scopeSpans) spans.push(...scope.spans);
    }
    response.end("{}");
  });
  return { spans, url: `http://127.0.0.1:${await listenInTest(server)}` };
}

function attributeOf(span: Span | undefined, key: string): string | undefined {
  return span?.attributes.find((attribute) => attribute.key === key)?.value.stringValue;
}

test("with USAGE_TELEMETRY the fetch of a task is a span, child of the span that enqueued it", async () => {
  const bench = await setupService({ days: 2, workspaces: 1 });
  const { spans, url } = await startReceiver();
  const sdk = { NODE_OPTIONS: `--import=${SDK}`, OTEL_EXPORTER_OTLP_ENDPOINT: url };
  const service = await bench.serve({ environment: { ...sdk, USAGE_TELEMETRY: "on" } });
  await bench.loaded();
  const worked = () => spans.find((span) => span.kind === CONSUMER && span.name.includes("fetch-default"));
  const work = (await poll(worked, { deadlineMs: 10_000 })) as Span;
  expect(work).toMatchObject({ scope: "usage-etl", status: {} });
  expect(attributeOf(work, "bullmq.job.name")).toBe("extract");
  expect(attributeOf(work, "bullmq.job.id")).toMatch(/^\d+-\d+$/);

  const enqueueing = (await poll(() => spans.find((span) => span.spanId === work.parentSpanId), {
    deadlineMs: 10_000,
  })) as Span;
  expect(enqueueing).toMatchObject({ kind: PRODUCER, traceId: work.traceId });
  expect(attributeOf(enqueueing, "bullmq.queue.name")).toBe("fetch-default");
  // Scheduled jobs have spans too, and no span holds the key.
  const control = spans.filter((span) => span.kind === CONSUMER && span.name.includes("control-default"));
  expect(control.map((span) => attributeOf(span, "bullmq.job.name"))).toContain("sync");
  expect(JSON.stringify(spans)).not.toContain(bench.standin.apiKey);

  // Without the setting there are none.
  await end(service, "SIGTERM");
  spans.splice(0);
  await syncsGoOn(await bench.serve({ environment: sdk }), 1);
  expect(spans).toEqual([]);
});
