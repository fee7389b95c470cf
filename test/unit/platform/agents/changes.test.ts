import { describe, expect, test } from "vitest";
import { createA2aClient } from "../../../../src/platform/agents/a2a.ts";
import { createControlPlaneClient } from "../../../../src/platform/agents/control-plane.ts";
import { rawServer, status } from "../http/raw-server.ts";
import { httpOf, refused, setup } from "./clients.ts";

describe("requests that change something", () => {
  test.each([500, 503, 429])("are not retried after %d", async (code) => {
    const server = await rawServer(() => status(`${code} X`, "no"));
    const client = createControlPlaneClient(httpOf(server.url));
    const error = await refused(client.createDeployment({ name: "d" }));
    expect(error).toMatchObject({ status: code, method: "POST" });
    expect(error.next).not.toContain("retried");
    expect(server.requests).toHaveLength(1);
  });

  test("follow only a redirect that keeps method and body", async () => {
    const { standin } = await setup();
    const moved = (code: number) =>
      rawServer((head) => ({
        bytes: `HTTP/1.1 ${code} X\r\nlocation: ${/ (\S+) HTTP/.exec(head)?.[1]}x\r\ncontent-length: 0\r\n\r\n`,
        closing: "end",
      }));
    for (const code of [307, 303]) {
      const server = await moved(code);
      const error = await refused(createA2aClient(httpOf(server.url)).send({ assistantId: "a", text: "x" }));
      expect(server.requests).toHaveLength(code === 307 ? 4 : 1);
      expect(error.code).toBe(code === 307 ? "redirect_refused" : "answer_invalid");
    }
    expect(standin.requests.count).toBe(0);
  });

  test("fail with request_refused if the body is too large", async () => {
    const { a2a } = await setup();
    const error = await refused(a2a.send({ assistantId: "agent", text: "x".repeat(10_000_000) }));
    expect(error).toMatchObject({ status: 413, code: "request_refused" });
  });
});
