import fc from "fast-check";
import { expect, test } from "vitest";
import type { PlatformHttp, SendRequest } from "../../../src/core/platform/http/http.ts";
import { createA2aClient } from "../../../src/features/agents/a2a.ts";
import type { TaskEvent } from "../../../src/features/agents/a2a-responses.ts";
import { anyJson, often, outcomeOf, responseOf, SEED } from "./fuzz.ts";

const MESSAGE = { assistantId: "fe096781-5601-53d2-b2f6-0d3403f7e9ca", text: "hello" };
const CODES = ["response_invalid", "rpc_error", "response_cut"];

function clientOf(responses: readonly object[], isStream = false) {
  const send = async ({ body }: SendRequest) => {
    const texts = responses.map((one) => {
      const text = JSON.stringify({ jsonrpc: "2.0", id: (body as { id: string }).id, ...one });
      return isStream ? `data: ${text}\n\n` : text;
    });
    return responseOf(Buffer.from(texts.join("")), 500);
  };
  return createA2aClient({ send } as unknown as PlatformHttp);
}

async function streamOf(results: readonly unknown[]): Promise<TaskEvent[]> {
  const seen = [];
  for await (const event of clientOf(
    results.map((result) => ({ result })),
    true,
  ).stream(MESSAGE))
    seen.push(event);
  return seen;
}

const STATES = ["submitted", "working", "input-required", "completed", "canceled", "failed", "auth-required"];
const texts = fc.array(fc.string({ maxLength: 8 }), { maxLength: 3 });
const id = fc.constantFrom("t", "c", "x-1");
const task = fc.record({
  id,
  contextId: id,
  state: fc.constantFrom(...STATES),
  artifacts: fc.option(fc.array(texts, { maxLength: 2 })),
  said: fc.option(texts),
});
type Drawn = typeof task extends fc.Arbitrary<infer T> ? T : never;

function wireOf({ state, artifacts, said, ...ids }: Drawn) {
  const part = (text: string) => ({ kind: "text", text });
  const message = said && { role: "agent", parts: said.map(part) };
  return {
    ...ids,
    status: { state, message },
    artifacts: artifacts?.map((all) => ({ parts: all.map(part) })),
  };
}

test(`a task reads the same with and without its kind, sent and streamed (seed ${SEED})`, async () => {
  await fc.assert(
    fc.asyncProperty(task, async (drawn) => {
      const wire = wireOf(drawn);
      const results = [wire, { ...wire, kind: "task" }];
      const read = [];
      for (const result of results) read.push(await clientOf([{ result }]).send(MESSAGE));
      for (const one of read) expect(one).toEqual(read[0]);
      expect(read[0]).toMatchObject({ taskId: drawn.id, contextId: drawn.contextId, state: drawn.state });
      const streamed = [];
      for (const result of results) streamed.push(await outcomeOf(() => streamOf([result])));
      for (const one of streamed) expect(one).toEqual(streamed[0]);
      const isUnderWay = ["submitted", "working"].includes(drawn.state);
      expect(streamed[0]).toEqual(
        isUnderWay ? { code: "response_cut" } : { value: [{ ...read[0], final: true }] },
      );
    }),
    often(30),
  );
});

/** What a server may put anywhere: mostly near to a response. */
const near = fc.oneof(
  task.map(wireOf),
  fc.dictionary(
    fc.constantFrom(
      "kind",
      "id",
      "status",
      "parts",
      "taskId",
      "contextId",
      "artifact",
      "append",
      "final",
      "state",
      "__proto__",
      "constructor",
    ),
    fc.oneof(anyJson, fc.constantFrom("task", "message", "status-update", "artifact-update", "completed")),
  ),
  anyJson,
);
test(`any response is a task, or is refused by a code (seed ${SEED})`, async () => {
  const response = fc.oneof(
    near.map((result) => ({ result })),
    anyJson.map((error) => ({ error })),
    fc.tuple(near, anyJson).map(([result, error]) => ({ result, error })),
  );
  await fc.assert(
    fc.asyncProperty(response, async (given) => {
      const outcome = await outcomeOf(() => clientOf([given]).send(MESSAGE));
      if ("code" in outcome) {
        expect(CODES).toContain(outcome.code);
        return;
      }
      const { taskId, contextId, state, reply } = outcome.value;
      for (const text of [taskId, contextId, reply])
        expect(text === null || typeof text === "string").toBe(true);
      expect(typeof state).toBe("string");
    }),
    often(100),
  );
  await fc.assert(
    fc.asyncProperty(fc.array(near, { maxLength: 4 }), async (results) => {
      const outcome = await outcomeOf(() => streamOf(results));
      if ("code" in outcome) {
        expect(CODES).toContain(outcome.code);
        return;
      }
      expect(["submitted", "working", "unknown"]).not.toContain(outcome.value.at(-1)?.state);
    }),
    often(100),
  );
});
