import { Client } from "@langchain/langgraph-sdk";
import { describe, expect, test } from "vitest";
import { poll } from "../support/poll.ts";
import { setup, sum } from "../support/standin-bench.ts";

/** What traffic costs: runs are billed in the same ledger that billing answers from. */

const DAY = { start: "2026-09-16", end: "2026-09-17" };

async function metered() {
  const bench = await setup();
  const { standin, usage, csv, get } = bench;
  const client = new Client({
    apiUrl: standin.url,
    apiKey: standin.apiKey,
    callerOptions: { maxRetries: 0 },
  });
  const before = sum(await usage(DAY));
  const listed = (await (await get("/api/v1/workspaces")).json()) as { id: string; display_name: string }[];
  const { thread_id } = await client.threads.create();
  const start = (text: string, multitaskStrategy?: "reject" | "rollback") =>
    client.runs.create(thread_id, "agent", {
      input: { messages: [{ role: "user", content: text }] },
      ...(multitaskStrategy && { multitaskStrategy }),
    });
  const rpc = async (body: object) => {
    const response = await fetch(`${standin.url}/a2a/agent`, {
      method: "POST",
      headers: { accept: "application/json, text/event-stream" },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, ...body }),
    });
    return response.text();
  };
  return {
    ...bench,
    client,
    thread_id,
    start,
    rpc,
    csv,
    quiet: listed.find(({ display_name }) => display_name === "Sandbox (nobody yet)")?.id,
    billed: async () => sum(await usage(DAY)) - before,
  };
}

const params = { message: { role: "user", messageId: "m", parts: [{ kind: "text", text: "hello" }] } };

describe("the meter", () => {
  test("a run is billed when it begins, and stays billed when a rollback removes it", async () => {
    const { client, thread_id, start, billed } = await metered();
    const earlier = await start("delay=60000 one");
    await poll(async () => (await client.runs.get(thread_id, earlier.run_id)).status === "running");
    expect(await billed()).toBe(1);
    const later = await start("two", "rollback");
    await client.runs.join(thread_id, later.run_id);
    expect(await billed()).toBe(2);
  });

  test("each A2A message is billed, but no card, task lookup, notification or error", async () => {
    const { get, rpc, billed } = await metered();
    const sent = JSON.parse(await rpc({ method: "message/send", params }));
    await rpc({ method: "message/stream", params });
    expect(await billed()).toBe(2);
    await get("/.well-known/agent-card.json?assistant_id=agent");
    await rpc({ method: "tasks/get", params: { id: sent.result.id } });
    await rpc({ method: "tasks/cancel", params: { id: sent.result.id } });
    await rpc({ method: "message/send", params: {} });
    await rpc({ id: undefined, method: "message/send", params });
    expect(await billed()).toBe(2);
  });

  test("billed runs show in JSON and CSV, in every dimension, in the workspace that nobody else uses", async () => {
    const { client, thread_id, start, usage, csv, quiet, standin } = await metered();
    const run = await start("hello");
    await client.runs.join(thread_id, run.run_id);
    const project = standin.organisation.projects.at(-1);
    expect(project?.workspace.id).toBe(quiet);
    const of = (by: string) => ({ ...DAY, by, workspaces: [`${quiet}`] });
    const records = (await usage(of("project"))).usage.filter(
      (one) => one.dimensions.project_id === project?.id,
    );
    expect(records).toMatchObject([{ traces: 1, dimensions: { project_name: "agent-server" } }]);
    expect((await csv(of("project"))).filter((line) => line["Project ID"] === project?.id)).toMatchObject([
      { Traces: "1" },
    ]);
    const whole = sum(await usage(of("workspace")));
    for (const by of ["project", "user", "api_key"]) expect(sum(await usage(of(by)))).toBe(whole);
    const keys = (await usage(of("api_key"))).usage;
    expect(keys.find((one) => one.dimensions.api_key_short_key === "sk...-key")?.traces).toBe(1);
  });
});

test("a running stand-in takes faults of its meter over HTTP", async () => {
  const { standin, start, client, thread_id, billed } = await metered();
  const path = `${standin.url}/__standin/faults`;
  const metering = [{ fault: { kind: "drop" }, times: 2 }];
  expect((await fetch(path, { method: "POST", body: JSON.stringify({ metering }) })).status).toBe(200);
  await client.runs.join(thread_id, (await start("hello")).run_id);
  expect(await billed()).toBe(0);
  expect((await fetch(path, { method: "DELETE" })).status).toBe(200);
  await client.runs.join(thread_id, (await start("hello")).run_id);
  expect(await billed()).toBe(1);
});
