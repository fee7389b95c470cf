import fc from "fast-check";
import { expect, test } from "vitest";
import type { PlatformHttp, SendRequest } from "../../../src/core/platform/http/http.ts";
import { createA2aClient } from "../../../src/features/agents/a2a.ts";
import type { TaskEvent } from "../../../src/features/agents/a2a-responses.ts";
import { anyJson, often, outcomeOf, responseOf, SEED } from "./fuzz.ts";

const MESSAGE = { assistantId: "fe096781-5601-53d2-b2f6-0d3403f7e9ca", text: "hello" };
const CODES = ["response_invalid", "rpc_error", "response_cut"];
const noCard = () => responseOf(Buffer.from("{}"), 1);

function clientOf(responses: readonly object[], isStream = false) {
  const send = async ({ body }: SendRequest) => {
    const texts = responses.map((one) => {
      const text = JSON.stringify({ jsonrpc: "2.0", id: (body as { id: string }).id, ...one });
      return isStream ? `data: ${text}\n\n` : text;
    });
    return responseOf(Buffer.from(texts.join("")), 500);
  };
  return createA2aClient({ send, get: async () => noCard() } as unknown as PlatformHttp);
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

const in1 = (state: string) => `TASK_STATE_${state.replaceAll("-", "_").toUpperCase()}`;
function wireOf({ state, artifacts, said, ...ids }: Drawn, version: "0.3" | "1.0") {
  const part = (text: string) => (version === "0.3" ? { kind: "text", text } : { text });
  const message = said && { role: version === "0.3" ? "agent" : "ROLE_AGENT", parts: said.map(part) };
  return {
    ...ids,
    ...(version === "0.3" ? { kind: "task" } : {}),
    status: { state: version === "0.3" ? state : in1(state), message },
    artifacts: artifacts?.map((all) => ({ parts: all.map(part) })),
  };
}

test(`a task reads the same in both versions and envelopes, sent and streamed (seed ${SEED})`, async () => {
  await fc.assert(
    fc.asyncProperty(task, async (drawn) => {
      const wire1 = wireOf(drawn, "1.0");
      const results = [wireOf(drawn, "0.3"), wire1, { task: wire1 }, { ...wire1, kind: "task" }];
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
  task.map((drawn) => wireOf(drawn, "1.0")),
  fc.dictionary(
    fc.constantFrom(
      "kind",
      "id",
      "task",
      "message",
      "statusUpdate",
      "artifactUpdate",
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
const wrapped = fc.oneof(
  near,
  near.map((value) => ({ task: value })),
  near.map((value) => ({ statusUpdate: value })),
  near.map((value) => ({ artifactUpdate: value })),
  fc.tuple(near, near).map(([a, b]) => ({ task: a, message: b })),
);

test(`any response is a task, or is refused by a code (seed ${SEED})`, async () => {
  const response = fc.oneof(
    wrapped.map((result) => ({ result })),
    anyJson.map((error) => ({ error })),
    fc.tuple(wrapped, anyJson).map(([result, error]) => ({ result, error })),
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
    fc.asyncProperty(fc.array(wrapped, { maxLength: 4 }), async (results) => {
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
