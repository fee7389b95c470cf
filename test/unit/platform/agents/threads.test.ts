import { describe, expect, test } from "vitest";
import { rejection } from "../http/raw-server.ts";
import { setup } from "./clients.ts";

describe("threads and runs", () => {
  test("a run is created, joined and read", async () => {
    const { threads } = await setup();
    const { threadId } = await threads.createThread();
    const run = await threads.createRun({ threadId, assistantId: "agent", text: "hello delay=100" });
    // A run of the stand-in may end before anybody looks.
    const { status } = await threads.waitForStart(run, { withinMs: 10_000 });
    expect(["running", "success"]).toContain(status);
    expect(await threads.join(run, { withinMs: 10_000 })).toEqual({ ...run, status: "success" });
    expect(await threads.state(threadId)).toEqual({
      messages: [
        { type: "human", content: "hello delay=100" },
        { type: "ai", content: "Echo: hello delay=100" },
      ],
    });
  });

  test("a client that hangs up does not end the run, and a lost join is repeated", async () => {
    const { threads, standin } = await setup();
    const { threadId } = await threads.createThread();
    const run = await threads.createRun({ threadId, assistantId: "agent", text: "delay=500 hello" });
    const hangUp = new AbortController();
    const joining = rejection(threads.join(run, { withinMs: 60_000, signal: hangUp.signal }));
    await threads.waitForStart(run, { withinMs: 10_000 });
    hangUp.abort(new Error("hung up"));
    expect(await joining).toMatchObject({ message: "hung up" });
    standin.faults.script({ fault: { kind: "reset" }, match: { path: "/join" } });
    expect(await threads.join(run, { withinMs: 60_000 })).toMatchObject({ status: "success" });
  });

  test("waiting for a long run ends at the deadline", async () => {
    const { threads } = await setup();
    const { threadId } = await threads.createThread();
    const run = await threads.createRun({ threadId, assistantId: "agent", text: "delay=60000" });
    expect(await rejection(threads.join(run, { withinMs: 1 }))).toMatchObject({ code: "deadline_passed" });
  });
});
