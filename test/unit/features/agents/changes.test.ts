import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { createA2aClient } from "../../../../src/features/agents/a2a.ts";
import { createControlPlaneClient } from "../../../../src/features/agents/control-plane.ts";
import { rawServer, status } from "../../core/platform/http/raw-server.ts";
import { httpOf, refused } from "./clients.ts";

describe("requests that change something", () => {
  test.each([500, 503, 429])("are not retried after %d", async (code) => {
    const server = await rawServer(() => status(`${code} X`, "no"));
    const client = createControlPlaneClient(httpOf(server.url));
    const error = await refused(client.createDeployment({ name: "d" }));
    expect(error).toMatchObject({ status: code, method: "POST" });
    expect(error.next).not.toContain("retried");
    expect(server.requests).toHaveLength(1);
  });

  test.each([303, 307])("follow no redirect (%d), and tell what may have happened", async (code) => {
    const server = await rawServer(() => status(`${code} X`, "", ["location: /other"]));
    const assistantId = "fe096781-5601-53d2-b2f6-0d3403f7e9ca";
    const error = await refused(createA2aClient(httpOf(server.url)).send({ assistantId, text: "x" }));
    expect(changing(server.requests)).toHaveLength(1);
    expect([error.code, error.next]).toEqual(["redirect_refused", expect.stringContaining("costs a trace")]);
  });

  const SECRET = "sk-proj-5up3r5ecret-0123456789";
  const body = { name: "d", secrets: [{ name: "OPENAI_API_KEY", value: SECRET }] };
  test.each([
    [
      "a 422 with its input",
      422,
      { detail: [{ loc: ["body", "secrets"], msg: "wrong", input: body.secrets }] },
    ],
    ["a 500 with the request", 500, { request: JSON.stringify(body) }],
    ["a cut of it", 400, { detail: `input_value='${SECRET.slice(0, 14)}...${SECRET.slice(-9)}'` }],
    ["a response that is not ours", 200, `<html>${SECRET}`],
  ])("show nothing that was sent: %s", async (_what, code, response) => {
    const server = await rawServer(() =>
      status(`${code} X`, typeof response === "string" ? response : JSON.stringify(response)),
    );
    const client = createControlPlaneClient(httpOf(server.url));
    const error = await refused(client.createDeployment(body));
    const shown = inspect(error, { depth: 9, showHidden: true });
    expect(shown).toContain("[redacted]");
    for (const part of [SECRET.slice(0, 14), SECRET.slice(-9)]) expect(shown).not.toContain(part);
    if (code === 422)
      expect([error.message, error.locations]).toEqual([expect.stringContaining("wrong"), ["body.secrets"]]);
  });
});

const changing = (requests: readonly string[]) => requests.filter((head) => !head.startsWith("GET "));
