import { describe, expect, test } from "vitest";
import { busyCell, setup, sum } from "./setup.ts";

const DAY = { start: "2026-06-02", end: "2026-06-03" };

describe("access of the key", () => {
  const listed = async ({ get }: Awaited<ReturnType<typeof setup>>, query = "") =>
    (await (await get(`/api/v1/workspaces${query}`)).json()) as { id: string; is_deleted: boolean }[];

  test("an unreadable workspace is left out without an error, and comes back when access is granted", async () => {
    const bench = await busyCell();
    const { standin, admin, usage } = bench;
    const [hidden] = standin.organisation.unreadable;
    const ids = async () => (await listed(bench)).map(({ id }) => id);
    expect(await ids()).toHaveLength(5);
    expect(await ids()).not.toContain(hidden?.id);
    expect((await usage({ ...DAY, workspaces: [hidden?.id ?? ""] })).usage).toEqual([]);
    await admin("PATCH", `/workspaces/${hidden?.id}`, { readable: true });
    expect(await ids()).toContain(hidden?.id);
    expect(sum(await usage({ ...DAY, workspaces: [hidden?.id ?? ""] }))).toBeGreaterThan(0);
    await admin("PATCH", `/workspaces/${bench.workspace.id}`, { readable: false });
    expect(await ids()).not.toContain(bench.workspace.id);
    expect((await usage({ ...DAY, workspaces: [bench.workspace.id] })).usage).toEqual([]);
  });

  test("a deleted workspace leaves the listing, keeps its past, and gets no new usage", async () => {
    const bench = await busyCell();
    const { admin, usage, workspace } = bench;
    const workspaces = [workspace.id];
    await admin("POST", "/clock", { now: "2026-06-03T12:00:00Z" });
    const past = await usage({ ...DAY, workspaces });
    const today = { start: "2026-06-03", end: "2026-06-04", workspaces };
    const partly = await usage(today);
    await admin("PATCH", `/workspaces/${workspace.id}`, { deleted: true });
    await admin("POST", "/clock", { advance_seconds: 86_400 });
    expect((await usage({ start: "2026-06-04", end: "2026-06-05", workspaces })).usage).toEqual([]);
    expect(await usage({ ...DAY, workspaces })).toEqual(past);
    expect(await usage(today)).toEqual(partly);
    expect(await listed(bench)).toHaveLength(4);
    const all = await listed(bench, "?include_deleted=true");
    expect(all.find(({ id }) => id === workspace.id)?.is_deleted).toBe(true);
  });

  test("a key of the organization names the workspace of a control-plane request", async () => {
    const { get, admin, standin, target } = await setup({ organizationScoped: true });
    const template = "/v2/sandboxes/templates/nobody";
    const refused = await get(template);
    expect([refused.status, await refused.json()]).toEqual([
      403,
      { error: "org_scoped_key_requires_workspace" },
    ]);
    const [readable, , , , , unreadable] = standin.organisation.workspaces.map(({ id }) => id);
    expect((await get(template, { "x-tenant-id": `${readable}` })).status).toBe(404);
    expect((await get(template, { "x-tenant-id": `${unreadable}` })).status).toBe(403);
    // Billing and the listing are of the organization.
    expect([(await get(target(DAY))).status, (await get("/api/v1/workspaces")).status]).toEqual([200, 200]);
    await admin("PATCH", "/access", { organization_scoped: false });
    expect((await get(template)).status).toBe(404);
    await admin("PATCH", "/access", { organization_scoped: true });
    await admin("POST", "/reset", {});
    expect((await get(template)).status).toBe(403);
  });

  test("the key can be revoked and rotated, and can lose organization:read", async () => {
    const { get, target, admin, standin } = await busyCell();
    const status = async (path = target(DAY)) => (await get(path)).status;
    await admin("PATCH", "/access", { organization_read: false });
    const refused = await get(target(DAY));
    expect([refused.status, await refused.json()]).toEqual([403, { error: "Forbidden" }]);
    expect(await status("/api/v1/workspaces")).toBe(200);
    await admin("PATCH", "/access", { organization_read: true, revoked: true });
    expect([await status(), await status("/api/v1/workspaces"), await status("/api/v1/info")]).toEqual([
      401, 401, 200,
    ]);
    await admin("PATCH", "/access", { revoked: false, api_key: "another" });
    expect(standin.apiKey).toBe("another");
    expect(await status()).toBe(200);
    expect((await get(target(DAY), { "x-api-key": "standin-key" })).status).toBe(401);
  });
});
