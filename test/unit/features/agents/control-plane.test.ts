import { inspect } from "node:util";
import { describe, expect, onTestFinished, test } from "vitest";
import { DeadlineError } from "../../../../src/core/base/errors.ts";
import { Secret } from "../../../../src/core/base/secret.ts";
import { PlatformHttp } from "../../../../src/core/platform/http/http.ts";
import { controlPlaneClientOf, deploymentClientsOf } from "../../../../src/features/agents/clients.ts";
import { createControlPlaneClient, hasFailed } from "../../../../src/features/agents/control-plane.ts";
import { KEY, rawServer, rejection, status } from "../../core/platform/http/raw-server.ts";
import { handClock, httpOf, refused, responded } from "./clients.ts";

describe("control plane", () => {
  test("sends the bearer token with templates alone, and the workspace with every call but the deployment's", async () => {
    const template = responded(JSON.stringify({ name: "t", image: "i", resources: {} }));
    const created = responded('{"id":"d","thread_id":"t"}');
    const server = await rawServer((head) => (head.includes("/templates/") ? template : created));
    const token = "t0ken-of-the-gateway";
    const access = {
      apiKey: new Secret(KEY),
      organizationId: undefined,
      controlPlaneUrl: server.url,
      deploymentUrl: server.url,
      workspaceId: "w-1",
      bearerToken: new Secret(token),
    };
    const [plane, deployment] = [controlPlaneClientOf(access), deploymentClientsOf(access)];
    onTestFinished(() => Promise.all([plane.close(), deployment.close()]).then(() => {}));
    await plane.template("t");
    await plane.renameTemplate({ name: "t", to: "u" });
    await plane.deployment("d");
    await plane.createDeployment({});
    await deployment.threads.createThread();
    const has = (header: string) => server.requests.map((head) => head.toLowerCase().includes(header));
    expect(has(`\r\nx-api-key: ${KEY.toLowerCase()}`)).toEqual([true, true, true, true, true]);
    expect(has(`\r\nauthorization: bearer ${token}`)).toEqual([true, true, false, false, false]);
    expect(has("\r\nx-tenant-id: w-1")).toEqual([true, true, true, true, false]);
  });

  test("the bearer token is in no error, whatever the server says", async () => {
    const token = "t0ken-of-the-gateway";
    const server = await rawServer((_head, index) =>
      index === 0
        ? status("409 Conflict", `{"detail":"no Bearer ${token} and ${encodeURIComponent(token)}"}`)
        : { bytes: `HTTP/1.1 200 OK ${token}\r\nx: ${token}\r\n\u0000`, closing: "end" },
    );
    const http = new PlatformHttp({ baseUrl: server.url, apiKey: KEY, bearerToken: token });
    onTestFinished(() => http.close());
    const client = createControlPlaneClient(http);
    const errors = [
      await refused(client.renameTemplate({ name: "a", to: "b" })),
      await refused(client.template("a")),
    ];
    expect(errors[0]?.message).toContain("[redacted]");
    for (const error of errors) expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(token);
  });

  const waitOn = async (...responses: ReturnType<typeof status>[]) => {
    const server = await rawServer((_head, index) => responses[index] ?? responses.at(-1));
    const client = createControlPlaneClient(httpOf(server.url), handClock());
    const wait = (signal?: AbortSignal) =>
      client.waitForRevision({ deploymentId: "d", revisionId: "r" }, { withinMs: 60_000, signal });
    return { server, wait };
  };
  const statusOf = (name: string) => responded(JSON.stringify({ status: name }));

  test("waiting ends at the deadline, and at once on an abort", async () => {
    const { server, wait } = await waitOn(statusOf("QUEUED"));
    const error = await rejection(wait());
    expect(error).toBeInstanceOf(DeadlineError);
    expect(error).toMatchObject({ code: "deadline_passed" });
    expect(server.requests).toHaveLength(12);
    await expect(wait(AbortSignal.abort(new Error("stop")))).rejects.toThrow("stop");
  });

  test.each(["BUILD_FAILED", "CANCELED", "failed"])("%s ends the wait as failed", async (name) => {
    const ended = await (await waitOn(statusOf(name))).wait();
    expect([ended.status, hasFailed(ended)]).toEqual([name, true]);
  });

  test("a revision that is not found at first is asked for again, for ten seconds", async () => {
    const missing = status("404 Not Found", '{"detail":"not yet"}');
    const late = await waitOn(missing, missing, statusOf("BUILDING"), statusOf("DEPLOYED"));
    expect(await late.wait()).toMatchObject({ status: "DEPLOYED" });
    const never = await waitOn(missing);
    expect(await refused(never.wait())).toMatchObject({ status: 404 });
    expect(never.server.requests).toHaveLength(7);
    const gone = await waitOn(statusOf("BUILDING"), missing);
    expect(await refused(gone.wait())).toMatchObject({ status: 404 });
    expect(gone.server.requests).toHaveLength(2);
  });
});
