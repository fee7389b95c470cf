import { expect, test } from "vitest";
import { readBill } from "../../../../src/features/costs/read-bill.ts";
import type { Bench } from "../../../support/source.ts";
import { setup } from "../../../support/source.ts";

const setupTags = (options: Parameters<typeof setup>[0] = {}) =>
  setup({ days: 3, workspaces: [0, 1], ...options, standin: { tags: "on", ...options.standin } });
const read = async (bench: Bench) => readBill(await bench.open(), { reach: "month", isPatient: false });

const TYPES = { projects: "project", deployments: "deployment", sandboxes: "sandbox" } as const;

function inStandin({ standin, workspaceIds }: Bench, type: keyof typeof TYPES): string[] {
  return workspaceIds
    .flatMap((workspaceId) =>
      standin.tags
        .of(workspaceId)
        .flatMap(({ key, value, resources }) =>
          resources
            .filter((one) => one.type === type)
            .map(({ id }) => `${workspaceId} ${id} ${key} ${value}`),
        ),
    )
    .sort();
}

async function inViews({ sql }: Bench, type: keyof typeof TYPES): Promise<string[]> {
  const rows = await sql<{ line: string }>(
    `SELECT concat_ws(' ', workspace_id, dimension_id, tag_key, tag_value) AS line
     FROM reporting_detail.dim_tag WHERE group_by = '${TYPES[type]}' AND is_current`,
  );
  return rows.map(({ line }) => line).sort();
}

test("tags are those of the platform, and usage by a tag adds up to all usage", async () => {
  const bench = await setupTags();
  await bench.sync();
  expect((await read(bench)).parts.resource_tags).toMatchObject({ refusal: null });
  for (const type of ["projects", "deployments", "sandboxes"] as const) {
    expect(inStandin(bench, type).length, type).toBeGreaterThan(0);
    expect(await inViews(bench, type), type).toEqual(inStandin(bench, type));
  }
  const [sums] = await bench.sql<{ all: number; tagged: number; values: number }>(`
    SELECT (SELECT sum(traces) FROM reporting.fct_usage_project_daily)::integer AS all, sum(traces)::integer AS tagged,
           count(DISTINCT t.tag_value)::integer AS values
    FROM reporting.fct_usage_project_daily f
    LEFT JOIN reporting_detail.dim_tag t
      ON (t.source_id, t.group_by, t.workspace_id, t.dimension_id) = (f.source_id, 'project', f.workspace_id, f.project_id)
     AND t.tag_key = 'Application'
     AND f.usage_date >= t.valid_from AND f.usage_date < t.valid_to`);
  expect(sums?.tagged).toBe(sums?.all);
  expect(sums?.values).toBeGreaterThan(1);

  const [project] = bench.standin.tags.of(bench.workspaceIds[0] ?? "")[0]?.resources ?? [];
  bench.standin.tags.remove(project?.taggingId ?? "");
  bench.standin.tags.set({ resourceId: project?.id ?? "", key: "Team", value: "growth" });
  await read(bench);
  for (const type of ["projects", "deployments", "sandboxes"] as const)
    expect(await inViews(bench, type), type).toEqual(inStandin(bench, type));
});
