import { describe, expect, test } from "vitest";
import { rejection } from "../http/raw-server.ts";
import { setup } from "./clients.ts";

describe("threads and runs", () => {
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
});
