import { expect, test } from "vitest";
import type { Question, Row } from "./model/commands.ts";
import { History } from "./model/history.ts";
import type { Fault } from "./model/statements.ts";
import { setupStore } from "./setup.ts";

// The model test crashes loads at random statements. Here, one load that needs every kind of statement crashes at each.

const question: Question = { groupBy: "project", stride: "day", at: 0, length: 2, workspaces: 0b011 };
const faults: { kind: Fault["kind"]; happens: string }[] = [
  { kind: "die", happens: "its process dies" },
  { kind: "kill", happens: "its backend is killed" },
  { kind: "lose", happens: "a reply is lost" },
];

test.each(faults)("a load leaves the store consistent if $happens at any statement", async ({ kind }) => {
  const past = await History.begin(await setupStore());
  // Only w1 has proof of access, so every response leaves unverified time of w2.
  await past.list([{ id: "w1", name: "One", isDeleted: false }], 0);
  await past.name(["w1"], 0, { isStatistics: true });
  const load = async (rows: Row[], fault: Fault | null) => {
    const response = await past.request(question, rows, 1_000);
    return { response, ...(await past.deliver({ question, response }, fault)) };
  };
  await load([row("p1", 0, 1), row("p2", 1, 5)], null);

  // Time that failed; then a new id, a final count that changes, one that retires, one that stays.
  let changes = 0;
  const change = async (fault: Fault | null) => {
    await past.fail(await past.request(question, [], 1_000));
    return load([row("p1", 0, ++changes), row("p2", 1, 5), row(`new${changes}`, 2, 1)], fault);
  };
  await change(null);
  const { trace } = await change(null);
  expect(trace.commits).toBe(4);
  for (let at = 1; at <= trace.texts.length; at++) {
    const { response, error } = await change({ kind, at });
    await past.check();
    if (kind !== "die") continue;
    expect(String(error)).toContain(`died before statement ${at}`);
    const again = await past.deliver({ question, response }, null);
    expect(again.result?.outcome).toBe("loaded");
    await past.check();
  }
});

function row(id: string, bucket: number, traces: number): Row {
  return { workspace: 0, bucket, id, name: id.toUpperCase(), traces };
}
