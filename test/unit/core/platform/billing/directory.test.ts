import { describe, expect, it } from "vitest";
import { clientOf, framed, rawServer, rejection, status } from "../http/raw-server.ts";

const UPPER = "0B2E6B5C-8A7E-4A5E-9C3A-3F6F3C0C1D2E";

describe("The listing of workspaces", () => {
  it("has ids, names and deletion; unknown fields are ignored", async () => {
    const listed = [
      { id: UPPER, display_name: "A", is_deleted: true, more: [{}] },
      { id: "b", display_name: "", is_deleted: null },
      { id: "c" },
    ];
    const server = await rawServer(() => status("200 OK", JSON.stringify(listed)));
    const client = clientOf(server.url);
    expect(await client.workspaces({ includeDeleted: true })).toEqual([
      { id: UPPER.toLowerCase(), displayName: "A", isDeleted: true },
      { id: "b", displayName: null, isDeleted: false },
      { id: "c", displayName: null, isDeleted: false },
    ]);
    await client.workspaces();
    expect(server.requests.map((head) => head.split(" ")[1])).toEqual([
      "/api/v1/workspaces?include_deleted=true",
      "/api/v1/workspaces",
    ]);
  });

  it.each([404, 405])("is undefined if the server responds with %d", async (code) => {
    const server = await rawServer(() => status(`${code} X`, "{}"));
    const client = clientOf(server.url);
    expect(await client.workspaces()).toBeUndefined();
    expect(await client.organization()).toBeUndefined();
    expect(await client.info()).toBeUndefined();
  });

  it.each([400, 401, 403, 410, 500])("fails if the server responds with %d", async (code) => {
    const server = await rawServer(() => status(`${code} X`, "{}"));
    expect(await rejection(clientOf(server.url).workspaces())).toMatchObject({ status: code });
  });

  const twice = '[{"id":"a"},{"id":"b","i\\u0064":"c"}]';
  it.each(["{}", "[1]", '[{"id":null}]', '[{"id":""}]', "[{}]", "<html>", "[] x", "[]]", twice])(
    "is refused if it is %s",
    async (body) => {
      const server = await rawServer(() => status("200 OK", body));
      expect(await rejection(clientOf(server.url).workspaces())).toMatchObject({
        code: "response_invalid",
        retryable: false,
      });
    },
  );

  it("is refused as cut at every byte of a close-delimited body", async () => {
    const body = Buffer.from(
      JSON.stringify([{ id: "a", display_name: 'é"]}', extra: { b: [1, null] } }, { id: "b" }]),
    );
    const server = await rawServer((_, index) => ({
      bytes: framed(body.subarray(0, index), "close"),
      closing: "end",
    }));
    const client = clientOf(server.url);
    for (let end = 0; end < body.length; end += 1) {
      expect(await rejection(client.workspaces()), `cut at ${end}`).toMatchObject({
        code: "response_cut",
        retryable: true,
      });
    }
    expect(await client.workspaces()).toHaveLength(2);
  });
});

describe("The client", () => {
  it("reads organisation and version", async () => {
    const server = await rawServer((head) =>
      status(
        "200 OK",
        head.includes("/orgs/current") ? `{"id":"${UPPER}","display_name":"Acme"}` : '{"version":"0.12.3"}',
      ),
    );
    const client = clientOf(server.url);
    expect(await client.organization()).toEqual({ id: UPPER.toLowerCase(), displayName: "Acme" });
    expect(await client.info()).toEqual({ version: "0.12.3" });
    expect(server.requests.map((head) => head.split(" ")[1])).toEqual([
      "/api/v1/orgs/current",
      "/api/v1/info",
    ]);
  });
});
