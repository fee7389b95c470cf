import { expect, test } from "vitest";
import { addWorkspaces } from "../../../../src/core/pipeline/source/open-source.ts";
import { workspacesOf } from "../../../../src/core/store/access/workspaces.ts";
import { listActions } from "../../../support/actions.ts";
import { setup } from "../../../support/source.ts";

/** Workspaces that an operator makes known: those that the platform shows, or any if it is forced. */

const ADA = { name: "ada", role: "operator", via: "command" } as const;
const UNSEEN = "0b7c7f3e-0000-4000-8000-00000000000a";

async function setupAdding(listing = true) {
  const bench = await setup({ workspaces: [0], days: 3 });
  const source = await bench.open();
  if (!listing) bench.standin.settings.listing = false;
  const add = (workspaceIds: readonly string[], isForced = false) =>
    addWorkspaces(source, { workspaceIds, isForced, by: ADA });
  const known = async () => (await workspacesOf(bench.store.db, source.sourceId)).sort();
  const orders = async () =>
    (await listActions(bench.store.db, { most: 10 })).map(
      ({ action, detail, outcome, actor }) => `${actor} ${action} ${outcome}: ${detail}`,
    );
  const [first = "", second = "", third = ""] = bench.standin.organisation.workspaces.map(({ id }) => id);
  return { bench, add, known, orders, first, second, third };
}

test.each([true, false])("a workspace is added if a listing (%s) or usage names it", async (listing) => {
  const { bench, add, known, orders, first, second, third } = await setupAdding(listing);
  expect(await known()).toEqual([first]);
  await add([second, third]);
  expect(await known()).toEqual([first, second, third].sort());
  expect(await orders()).toEqual([`ada workspace.add done: workspace ${second}, ${third}`]);
  const before = bench.standin.requests.count;
  await expect(add([UNSEEN, second])).rejects.toMatchObject({
    code: "workspace_not_shown",
    message: expect.stringContaining(`workspace ${UNSEEN}, which`),
  });
  expect(bench.standin.requests.count).toBeGreaterThan(before);
  expect(await known()).not.toContain(UNSEEN);
  await add([UNSEEN], true);
  expect(await known()).toContain(UNSEEN);
  expect(await orders()).toContain(`ada workspace.add done: workspace ${UNSEEN}, forced`);
  expect(await orders()).toHaveLength(2);
});

test("a source of another organization is refused before a workspace is added, even if it is forced", async () => {
  const { bench, add, known, first, second } = await setupAdding();
  await bench.sql("UPDATE usage.source SET organization_id = $1", [UNSEEN]);
  await expect(add([second], true)).rejects.toMatchObject({ code: expect.stringContaining("organization") });
  expect(await known()).toEqual([first]);
});
