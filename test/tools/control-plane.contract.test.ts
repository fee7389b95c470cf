import { randomUUID } from "node:crypto";
import {
  LangSmithResourceNameConflictError,
  LangSmithResourceNotFoundError,
  SandboxClient,
} from "langsmith/experimental/sandbox";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { z } from "zod";
import { LOCAL, type Reach, reach, TEMPLATE, untested } from "../contract/reach.ts";

/** The control plane (docs/platform.md, Control plane), for its real client and on the wire. */

const text = z.string().nullish();
const template = z.object({
  id: z.guid().nullish(),
  name: z.string(),
  image: z.string(),
  resources: z.looseObject({ cpu: z.string().optional(), memory: z.string().optional(), storage: text }),
  volume_mounts: z.array(z.looseObject({ volume_name: z.string(), mount_path: z.string() })).optional(),
  proxy_config: z
    .looseObject({
      rules: z
        .array(
          z.looseObject({
            name: z.string(),
            match_hosts: z.array(z.string()).min(1),
            inject_headers: z.record(z.string(), z.string()),
          }),
        )
        .min(1),
    })
    .nullish(),
  created_at: text,
  updated_at: text,
});
const invalid = z.object({
  detail: z
    .array(z.object({ loc: z.array(z.union([z.string(), z.int()])), msg: z.string(), type: z.string() }))
    .min(1),
});

describe.skipIf(untested("CONTROL_PLANE_URL"))("control plane", () => {
  let the: Reach;
  let client: SandboxClient;
  beforeAll(async () => {
    the = await reach("CONTROL_PLANE_URL");
    client = new SandboxClient({ apiEndpoint: `${the.url}/v2/sandboxes`, apiKey: the.apiKey, maxRetries: 0 });
  });
  afterAll(() => the.close());

  const request = (method: string, path: string, body?: string, apiKey = the.apiKey): Promise<Response> =>
    fetch(`${the.url}${path}`, {
      method,
      headers: { "x-api-key": apiKey, "content-type": "application/json" },
      ...(body === undefined ? {} : { body }),
    });
  const patch = (name: string, body: unknown): Promise<Response> =>
    request(
      "PATCH",
      `/v2/sandboxes/templates/${name}`,
      typeof body === "string" ? body : JSON.stringify(body),
    );

  test("langsmith renames a template there and back, and nothing but its name changes", async () => {
    const before = template.parse(await client.getTemplate(TEMPLATE));
    const other = `contract-${randomUUID().slice(0, 8)}`;
    const renamed = template.parse(await client.updateTemplate(TEMPLATE, { newName: other }));
    try {
      expect({ ...renamed, updated_at: null }).toEqual({ ...before, name: other, updated_at: null });
      await expect(client.getTemplate(TEMPLATE)).rejects.toThrow(LangSmithResourceNotFoundError);
      expect((await client.getTemplate(other)).name).toBe(other);
    } finally {
      await client.updateTemplate(other, { newName: TEMPLATE });
    }
    expect({ ...template.parse(await client.getTemplate(TEMPLATE)), updated_at: null }).toEqual({
      ...before,
      updated_at: null,
    });
  });

  test("langsmith gets an error for an unknown template", async () => {
    await expect(client.updateTemplate("contract-nowhere", { newName: "contract-other" })).rejects.toThrow(
      LangSmithResourceNotFoundError,
    );
  });

  test.runIf(LOCAL)("langsmith gets an error for a name that is taken", async () => {
    await expect(client.updateTemplate("python", { newName: "node" })).rejects.toThrow(
      LangSmithResourceNameConflictError,
    );
  });

  test.each([
    ["64 characters", `a${"b".repeat(63)}`],
    ["upper case", "Python"],
    ["a leading digit", "3python"],
    ["a trailing dash", "python-"],
    ["an underscore", "my_template"],
    ["unicode", "pythön"],
    ["no character", ""],
    ["no text", 5],
  ])("a name of %s is 422, with its place", async (_what, name) => {
    const response = await patch(TEMPLATE, { name });
    expect(response.status).toBe(422);
    expect(invalid.parse(await response.json()).detail[0]?.loc).toEqual(["body", "name"]);
  });

  test.runIf(LOCAL)("a name of 63 characters is accepted, and null or no name changes nothing", async () => {
    const longest = `a${"b".repeat(62)}`;
    expect((await client.updateTemplate("node", { newName: longest })).name).toBe(longest);
    for (const body of [{}, { name: null }, { name: longest }]) {
      const response = await patch(longest, body);
      expect([response.status, template.parse(await response.json()).name]).toEqual([200, longest]);
    }
    await client.updateTemplate(longest, { newName: "node" });
    expect(template.parse(await client.getTemplate("node"))).toMatchObject({
      resources: { cpu: "500m", memory: "512Mi" },
    });
  });

  test.runIf(LOCAL)("a deployment is created, deployed step by step, updated, and may fail", async () => {
    const created = await request(
      "POST",
      "/v2/deployments",
      JSON.stringify({ name: "a", source: "external_docker" }),
    );
    expect(created.status).toBe(201);
    const { id, latest_revision_id: first } = (await created.json()) as Record<string, string>;
    expect(await (await request("GET", `/v2/deployments/${id}`)).json()).toMatchObject({
      id,
      latest_revision_id: first,
    });
    expect(await statuses(`${id}`, `${first}`)).toEqual([
      "CREATING",
      "QUEUED",
      "BUILDING",
      "DEPLOYING",
      "DEPLOYED",
    ]);

    const update = async (body: object) =>
      (
        (await (await request("PATCH", `/v2/deployments/${id}`, JSON.stringify(body))).json()) as Record<
          string,
          string
        >
      ).latest_revision_id;
    expect(await update({ source_config: { build_on_push: false } })).toBe(first);
    const second = await update({ source_revision_config: { image_uri: "registry/fail" } });
    expect(second).not.toBe(first);
    expect(await statuses(`${id}`, `${second}`)).toEqual(["CREATING", "QUEUED", "BUILDING", "BUILD_FAILED"]);
    expect(await update({ source_revision_config: { image_uri: "registry/fail" } })).toBe(second);
  });

  async function statuses(id: string, revision: string): Promise<string[]> {
    const seen: string[] = [];
    for (let looks = 0; looks < 20; looks++) {
      const response = await request("GET", `/v2/deployments/${id}/revisions/${revision}`);
      const { status } = (await response.json()) as { status: string };
      if (seen.at(-1) !== status) seen.push(status);
      if (status === "DEPLOYED" || status.endsWith("_FAILED")) return seen;
    }
    return seen;
  }
});
