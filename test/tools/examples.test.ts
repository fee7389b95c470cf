import { readFile } from "node:fs/promises";
import { DuckDBInstance } from "@duckdb/node-api";
import { expect, test } from "vitest";
import { WORKSPACES } from "../support/reporting.ts";
import { FIRST, PROJECTS, SECOND, setupFiles } from "./files.ts";

test("docs/examples/duckdb.sql counts what the files hold", async () => {
  const { folder, write, load } = await setupFiles();
  await load("workspace", FIRST, [[WORKSPACES[0] as string, 9]]);
  await load(
    "project",
    FIRST,
    PROJECTS.map((id): [string, number] => [id, 3]),
  );
  await load("project", SECOND, [[PROJECTS[0] as string, 5]], 1);
  await write();
  const text = await readFile(new URL("../../docs/examples/duckdb.sql", import.meta.url), "utf8");
  const statements = text.split(/;$/m).filter((one) => one.trim() !== "");
  const instance = await DuckDBInstance.create(":memory:");
  const connection = await instance.connect();
  try {
    await connection.run(`SET file_search_path = '${folder}'`);
    for (const one of statements.slice(0, -1)) await connection.run(one);
    const result = await connection.runAndReadAll(statements.at(-1) ?? "");
    const rows = result.getRowObjectsJson() as { project: string; traces: string | null }[];
    const sums = new Map<string, number>();
    for (const { project, traces } of rows) sums.set(project, (sums.get(project) ?? 0) + Number(traces));
    expect(PROJECTS.map((id) => sums.get(`name of ${id}`))).toEqual([8, 3, 3]);
    expect([...sums.values()].reduce((sum, one) => sum + one, 0)).toBe(14);
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
});
