import { expect, test } from "vitest";
import type { StandinOptions } from "../../../src/local/standin/server.ts";
import { setup } from "./setup.ts";

const PATH = "/api/v1/workspaces/current/taggings";

interface Value {
  tag_key: string;
  tag_key_id: string;
  tag_value: string;
  tag_value_id: string;
  resources: Record<string, { tagging_id: string; resource_name: string; resource_id: string }[]>;
}

async function bench(options: StandinOptions = {}) {
  const { standin, get } = await setup({ tags: "on", ...options });
  const { organisation } = standin;
  const workspaceId = organisation.workspaces[0]?.id ?? "";
  const ask = (query = "", tenant = workspaceId) => get(`${PATH}${query}`, { "x-tenant-id": tenant });
  const values = async (query?: string, tenant?: string): Promise<Value[]> => {
    const response = await ask(query, tenant);
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    return (await response.json()) as Value[];
  };
  return { standin, organisation, workspaceId, ask, values };
}

const ofProject = (values: readonly Value[], id: string): string[] =>
  values
    .filter(({ resources }) => resources.projects?.some((one) => one.resource_id === id))
    .map((one) => `${one.tag_key}: ${one.tag_value}`);

test("one value can be asked for, and other parameters are refused", async () => {
  const { values, ask, organisation } = await bench();
  const [first, ...others] = await values();
  expect(others.length).toBeGreaterThan(1);
  expect(await values(`?tag_value_id=${first?.tag_value_id}`)).toEqual([first]);
  expect(await values("?tag_value_id=00000000-0000-4000-8000-000000000000")).toEqual([]);
  for (const query of ["?tag_value_id=x", "?tag_key_id=1"]) expect((await ask(query)).status).toBe(422);
  expect((await ask("", organisation.workspaces[5]?.id)).status).toBe(403);
});

test("a resource is tagged again, with two values of a key, and loses a tag", async () => {
  const { standin, values, organisation, workspaceId } = await bench();
  const given = await values();
  const own = organisation.projects.filter(({ workspace }) => workspace.id === workspaceId);
  const id = own.find((one) => ofProject(given, one.id).length === 2)?.id ?? "";
  const before = ofProject(given, id);
  const environment = { resourceId: id, key: "Environment", value: "test" };
  standin.tags.set(environment);
  standin.tags.set(environment);
  standin.tags.set({ resourceId: id, key: "Team", value: "blue" });
  const tagged = await values();
  expect(ofProject(tagged, id)).toEqual([...before, "Environment: test", "Team: blue"]);
  const keys = (all: Value[]) =>
    new Set(all.filter((one) => one.tag_key === "Environment").map((one) => one.tag_key_id));
  expect(keys(tagged)).toEqual(keys(given));
  const added = tagged.flatMap(({ resources }) => resources.projects ?? []);
  for (const one of added.filter(({ resource_id }) => resource_id === id).slice(-2))
    standin.tags.remove(one.tagging_id);
  const after = await values();
  expect(ofProject(after, id)).toEqual(before);
  expect(after.at(-1)).toMatchObject({ tag_key: "Team", resources: { projects: [] } });
  for (const project of own) project.dropped = project.id === id;
  expect(ofProject(await values(), id)).toEqual([]);
});
