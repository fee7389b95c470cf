import { Client } from "@langchain/langgraph-sdk";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { ASSISTANT, LOCAL, type Reach, reach, SLOW_TEXT, SLOWER_TEXT, untested } from "../contract/reach.ts";
import { poll } from "../support/poll.ts";

/** Threads and runs (docs/platform.md, Agent server), for their real client and on the wire. */

const state = z.object({
  values: z.looseObject({
    messages: z.array(z.looseObject({ type: z.string(), content: z.unknown() })).optional(),
  }),
});
const NOBODY = "00000000-0000-4000-8000-000000000000";

describe.skipIf(untested("DEPLOYMENT_URL"))("threads and runs", () => {
  let the: Reach;
  let client: Client;
  beforeAll(async () => {
    the = await reach("DEPLOYMENT_URL");
    client = new Client({ apiUrl: the.url, apiKey: the.apiKey, callerOptions: { maxRetries: 0 } });
  });
  afterAll(() => the.close());

  const said = (text: string) => ({ messages: [{ role: "user", content: text }] });
  const start = (
    threadId: string,
    text: string,
    multitaskStrategy?: "reject" | "interrupt" | "rollback" | "enqueue",
  ) =>
    client.runs.create(threadId, ASSISTANT, {
      input: said(text),
      ...(multitaskStrategy && { multitaskStrategy }),
    });
  const messages = async (threadId: string) =>
    (state.parse(await client.threads.getState(threadId)).values.messages ?? []).map(({ type, content }) => [
      type,
      content,
    ]);
  const statusOf = async (threadId: string, runId: string) => (await client.runs.get(threadId, runId)).status;
  const running = (threadId: string, runId: string) =>
    poll(async () => (await statusOf(threadId, runId)) !== "pending", { deadlineMs: 30_000 });
  const failure = (requested: Promise<unknown>): Promise<number | undefined> =>
    requested.then(
      () => undefined,
      (error: { status?: number }) => error.status,
    );
  test("a run is created, joined, and its reply is in the state", async () => {
    const { thread_id } = await client.threads.create();
    let noticed: unknown;
    const run = await client.runs.create(thread_id, ASSISTANT, {
      input: said("hello"),
      onRunCreated: (created) => {
        noticed = created;
      },
    });
    // The client reads this from Content-Location.
    expect(noticed).toEqual({ run_id: run.run_id, thread_id });
    await client.runs.join(thread_id, run.run_id);
    expect(await statusOf(thread_id, run.run_id)).toBe("success");
    expect((await client.runs.list(thread_id)).map((one) => one.run_id)).toEqual([run.run_id]);
    const found = await messages(thread_id);
    expect(found[0]).toEqual(["human", "hello"]);
    expect(found.at(-1)?.[0]).toBe("ai");
    if (the.local) expect(found.at(-1)?.[1]).toContain("hello");
  });

  test("rollback stops and removes the earlier run, and the state is the new run's alone", async () => {
    const { thread_id } = await client.threads.create();
    const earlier = await start(thread_id, SLOW_TEXT);
    await running(thread_id, earlier.run_id);
    expect(await statusOf(thread_id, earlier.run_id), "SLOW_TEXT is not slow enough to be rolled back").toBe(
      "running",
    );
    const joined = failure(client.runs.join(thread_id, earlier.run_id));

    const later = await start(thread_id, SLOWER_TEXT, "rollback");
    // Reading it gets 404, at once and for ever.
    expect(await failure(client.runs.get(thread_id, earlier.run_id))).toBe(404);
    // It is gone from the list and for every other call.
    expect((await client.runs.list(thread_id)).map((one) => one.run_id)).toEqual([later.run_id]);
    expect(await failure(client.runs.cancel(thread_id, earlier.run_id))).toBe(404);
    expect(await failure(client.runs.join(thread_id, earlier.run_id))).toBe(404);
    // It was stopped: a waiting client gets its response long before the run would have ended, and the new run begins.
    expect(await joined).toBe(404);
    await running(thread_id, later.run_id);
    // The state is the new run's alone while it runs and afterwards, when the earlier run would have replied.
    await poll(async () => (await messages(thread_id)).length > 0);
    const [opening] = await messages(thread_id);
    expect(opening).toEqual(["human", SLOWER_TEXT]);
    await client.runs.join(thread_id, later.run_id);
    const found = await messages(thread_id);
    expect(found.filter(([type]) => type === "human")).toEqual([["human", SLOWER_TEXT]]);
    if (the.local) {
      expect(found).toEqual([
        ["human", SLOWER_TEXT],
        ["ai", `Echo: ${SLOWER_TEXT}`],
      ]);
    }
    expect(await statusOf(thread_id, later.run_id)).toBe("success");
    expect(await failure(client.runs.get(thread_id, earlier.run_id))).toBe(404);
    expect((await client.runs.list(thread_id)).map((one) => one.run_id)).toEqual([later.run_id]);
  });

  test("an unknown id gets 404", async () => {
    const { thread_id } = await client.threads.create();
    expect(await failure(client.threads.getState(NOBODY))).toBe(404);
    expect(await failure(start(NOBODY, "hello"))).toBe(404);
    expect(await failure(client.runs.get(thread_id, NOBODY))).toBe(404);
    expect(await failure(client.runs.join(thread_id, NOBODY))).toBe(404);
    expect(
      await failure(client.runs.create(thread_id, "nobody-of-this-name", { input: said("x") })),
    ).toBeDefined();
  });

  describe.runIf(LOCAL)("on the assistant that echoes its input", () => {
    test("reject gets 409 and changes nothing", async () => {
      const { thread_id } = await client.threads.create();
      const earlier = await start(thread_id, "delay=300 one");
      expect(await failure(start(thread_id, "two", "reject"))).toBe(409);
      await client.runs.join(thread_id, earlier.run_id);
      expect(await messages(thread_id)).toEqual([
        ["human", "delay=300 one"],
        ["ai", "Echo: delay=300 one"],
      ]);
      expect((await client.runs.list(thread_id)).length).toBe(1);
    });

    test("enqueue, the default, waits for the earlier run, even one that fails", async () => {
      const { thread_id } = await client.threads.create();
      const earlier = await start(thread_id, "delay=2000 fail");
      const later = await start(thread_id, "two");
      await running(thread_id, earlier.run_id);
      expect(await statusOf(thread_id, later.run_id)).toBe("pending");
      await client.runs.join(thread_id, later.run_id);
      expect(await statusOf(thread_id, earlier.run_id)).toBe("error");
      expect((await messages(thread_id)).map(([, text]) => text)).toEqual([
        "delay=2000 fail",
        "two",
        "Echo: two",
      ]);
    });

    test("rollback removes waiting runs too, and keeps finished ones", async () => {
      const { thread_id } = await client.threads.create();
      const done = await start(thread_id, "before");
      await client.runs.join(thread_id, done.run_id);
      const under = await start(thread_id, "delay=60000 one");
      const waiting = await start(thread_id, "never begun");
      const last = await start(thread_id, "two", "rollback");
      await client.runs.join(thread_id, last.run_id);
      expect((await client.runs.list(thread_id)).map((one) => one.run_id)).toEqual([
        last.run_id,
        done.run_id,
      ]);
      for (const gone of [under, waiting])
        expect(await failure(client.runs.get(thread_id, gone.run_id))).toBe(404);
      expect((await messages(thread_id)).map(([, text]) => text)).toEqual([
        "before",
        "Echo: before",
        "two",
        "Echo: two",
      ]);
    });
  });
});
