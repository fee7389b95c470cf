import { expect, test } from "vitest";
import type { OpenSource } from "../../../../src/core/pipeline/source/source.ts";
import { checkProvider } from "../../../../src/features/costs/read-bill.ts";
import { readUsageLimits } from "../../../../src/features/costs/read-terms.ts";
import { platformError } from "../../../support/platform-error.ts";
import { type Bench, setup } from "../../../support/source.ts";

const openWith = (bench: Bench, billing: Partial<OpenSource["billing"]>) =>
  bench.open({ opened: (source) => void Object.assign(source.billing, billing) });

test("a provider that fails is named by month and asked for three months at most", async () => {
  const bench = await setup({ days: 200, workspaces: [0], standin: { scale: 0.1 } });
  let requested = 0;
  const failing = (error: Error, after = 0) => ({
    providerUsage: async () => {
      if (++requested > after) throw error;
      return [];
    },
  });
  const progress: unknown[] = [];
  const source = await openWith(bench, failing(platformError(500)));
  const result = await checkProvider(source, "all", (step) => progress.push(step));
  expect(requested).toBe(3);
  expect(result).toMatchObject({ refusal: null, months: [], findings: [], requests: 0, restated: 0 });
  expect(result.failed).toHaveLength(3);
  const months = result.failed.map(({ month }) => month);
  expect(months).toEqual([...months].sort());
  for (const one of result.failed) expect(one).toMatchObject({ code: "status_500", message: "it says 500" });
  expect(progress).toMatchObject([{ done: 1 }, { done: 2 }]);

  requested = 0;
  const later = await checkProvider(await openWith(bench, failing(platformError(500), 2)), "all");
  expect(later.months.map(({ month }) => month)).toEqual(months.slice(0, 2));
  expect(later.failed).toHaveLength(3);
  expect(later).toMatchObject({ requests: 2 });

  await expect(checkProvider(await openWith(bench, failing(new TypeError("a bug"))), "all")).rejects.toThrow(
    "a bug",
  );
});

test("limits of the organization are asked for once, and a workspace that alone is refused hides no other", async () => {
  const bench = await setup({ workspaces: [0, 1, 2] });
  const [first = "", second = "", third = ""] = [...bench.workspaceIds].sort();
  const requested: string[] = [];
  const refused = async (): Promise<never> => {
    throw platformError(403);
  };
  const limit = (workspaceId: string | undefined, value: number) => {
    return { workspaceId, limitType: "monthly_traces", value };
  };
  const accepted = { isRejecting: false, limitType: null, value: null };
  const read = async (billing: Partial<OpenSource["billing"]>) => {
    requested.length = 0;
    const source = await openWith(bench, billing);
    const result = await readUsageLimits(source);
    const kept = await bench.sql<{ of: string }>(
      "SELECT concat_ws(' ', coalesce(nullif(workspace, ''), 'all'), limit_value) AS of FROM usage.usage_limit",
    );
    return { ...result, kept: kept.map((row) => row.of).sort() };
  };
  const ofWorkspaces = {
    workspaceLimits: async ({ workspaceId }: { workspaceId: string }) => {
      requested.push(`limits ${workspaceId}`);
      return workspaceId === second ? refused() : [limit(undefined, 7)];
    },
    workspaceRejection: async ({ workspaceId }: { workspaceId: string }) => {
      requested.push(`rejection ${workspaceId}`);
      return workspaceId === second ? refused() : accepted;
    },
  };
  expect(
    await read({ ...ofWorkspaces, organizationLimits: async () => [limit(undefined, 5), limit(first, 6)] }),
  ).toEqual({ read: 2, refusal: null, kept: ["all 5", `${first} 6`].sort() });
  expect(requested).toEqual([first, second, third].map((id) => `rejection ${id}`));

  expect(await read({ ...ofWorkspaces, organizationLimits: refused })).toEqual({
    read: 2,
    refusal: null,
    kept: [`${first} 7`, `${third} 7`].sort(),
  });
  const without = { organizationLimits: refused, workspaceLimits: refused, workspaceRejection: refused };
  expect(await read(without)).toMatchObject({ read: 0, refusal: "it says 403", kept: { length: 2 } });
});
