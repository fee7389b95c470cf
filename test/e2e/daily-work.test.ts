import { describe, expect, test } from "vitest";
import { start } from "../support/cli.ts";
import { poll } from "../support/poll.ts";
import { bench, envOf, KEY, outputs, run } from "../support/program.ts";
import { wrongFigures } from "../support/tables.ts";

describe("the commands of a day", () => {
  test("a refused key makes sync and then status end with 5; the debug log does not show it", async () => {
    const made = await bench({ workspaces: [0] });
    const env = { ...envOf(made), USAGE_LOG_LEVEL: "debug" };
    made.standin.faults.script({ fault: { kind: "reset" }, times: 2, skip: 3 });
    expect((await run(["sync", "--inline"], env)).code).toBe(0);
    const wrongEnv = { ...env, USAGE_API_KEY: `${KEY}wrong` };
    const wrong = await run(["sync", "--inline"], wrongEnv);
    expect(wrong.code).toBe(5);
    expect(wrong.stderr).toMatch(
      /The platform does not know this key \(401\)\.\n {2}Set USAGE_API_KEY .*--verbose .*\[unauthorized\]/,
    );
    const whole = await run(["sync", "--inline", "--verbose"], wrongEnv);
    expect([whole.code, whole.stderr]).toEqual([
      5,
      expect.stringMatching(/GET http\S+ responded with 401: \{/),
    ]);
    const status = await run(["status"], env);
    expect([status.code, status.stdout]).toEqual([5, expect.stringContaining("refuses the key")]);
    expect((await run(["doctor", "--json"], { ...env, USAGE_API_KEY: `${KEY}wrong` })).code).toBe(5);
    expect((await run(["sync", "--inline"], env)).code).toBe(0);
    expect((await run(["status"], env)).code).toBe(0);
  });

  test("Ctrl-C ends a sync soon; what was loaded stays and the next sync completes it", async () => {
    const made = await bench({ workspaces: [0] });
    made.standin.faults.script({
      fault: { kind: "hang" },
      times: 1000,
      match: { path: "granular-usage", query: { group_by: "api_key" } },
    });
    const running = start(["sync", "--inline"], envOf(made));
    await poll(
      async () => (await made.sql("SELECT FROM usage.fetch WHERE group_by = 'api_key'")).length > 0,
      { deadlineMs: 20_000 },
    );
    running.process.kill("SIGINT");
    const ended = await running.ended;
    outputs.push(ended);
    expect([ended.code, ended.stderr]).toEqual([130, expect.stringContaining("[interrupted]")]);
    made.standin.faults.clear();
    expect((await run(["sync", "--inline"], envOf(made))).code).toBe(0);
    expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);
  });
});
