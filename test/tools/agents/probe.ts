import { createServer } from "node:http";
import { expect, onTestFinished, test } from "vitest";
import { startStandin } from "../../../src/features/standin/server.ts";
import { usageEtl } from "../../support/cli.ts";
import { listenInTest } from "../../support/listen.ts";
import { connectPlain } from "../../support/reporting.ts";
import { setupMigrated } from "../../support/store.ts";
import { startServer } from "./servers.ts";

const STARTS = /^\/threads\/[^/]+\/runs$|^\/a2a\//;
const MESSAGES = /"(message\/send|message\/stream|SendMessage|SendStreamingMessage)"/;

async function metered(server: string, standin: { url: string; apiKey: string }): Promise<string> {
  const headers = { "content-type": "application/json", "x-api-key": standin.apiKey };
  const proxy = createServer(async (request, response) => {
    let body = "";
    for await (const piece of request) body += piece;
    const { method = "GET", url = "" } = request;
    const starts = method === "POST" && STARTS.test(url) && (!url.startsWith("/a2a/") || MESSAGES.test(body));
    const { accept = "application/json", "a2a-version": version } = request.headers;
    const answered = await fetch(server + url, {
      method,
      headers: { ...headers, accept, ...(version !== undefined && { "a2a-version": `${version}` }) },
      ...(method === "GET" ? {} : { body }),
    });
    if (starts && answered.ok) {
      const run = { assistant_id: "agent", input: { messages: [{ role: "user", content: "billed" }] } };
      await fetch(`${standin.url}/runs/wait`, { method: "POST", headers, body: JSON.stringify(run) });
    }
    response.writeHead(answered.status, {
      "content-type": answered.headers.get("content-type") ?? "text/plain",
    });
    response.end(Buffer.from(await answered.arrayBuffer()));
  });
  return `http://127.0.0.1:${await listenInTest(proxy)}`;
}

test("probe matches, sync loads and bill counts the runs of a real server", async ({ skip }) => {
  const server = await startServer("0.16.7").catch((error) => skip(`No agent server here: ${error.message}`));
  onTestFinished(() => server.close());
  const standin = await startStandin();
  onTestFinished(() => standin.close());
  const { url } = await setupMigrated();
  const env = {
    USAGE_API_KEY: standin.apiKey,
    USAGE_BASE_URL: standin.url,
    USAGE_DEPLOYMENT_URL: await metered(server.url, standin),
    DATABASE_URL: url,
  };
  const probe = ["probe", "--project", "agent-server", "--settle-for", "PT1S", "--yes", "--json"];
  const probed = await usageEtl(probe, env);
  expect([probed.code, JSON.parse(probed.stdout)[0]]).toMatchObject([0, { state: "matched", expected: 6 }]);
  expect((await usageEtl(["sync", "--inline"], env)).code).toBe(0);
  const client = await connectPlain(url, "usage_reader");
  const sumOf = async (view: string, where: string) =>
    (await client.query(`SELECT sum(traces) AS traces FROM reporting.${view} WHERE ${where}`)).rows[0].traces;
  expect(await sumOf("fct_usage_project_daily", "project_name = 'agent-server'")).toBe("6");
  const month = new Date(standin.now()).toISOString().slice(0, 7);
  const [bill] = JSON.parse((await usageEtl(["bill", month, "--json"], env)).stdout);
  const traces = bill.lines.find(({ measure }: { measure: string }) => measure === "traces");
  expect(traces.quantity).toBe(await sumOf("fct_usage_workspace_daily", `usage_date >= '${month}-01'`));
});
