import pg from "pg";
import { expect, test } from "vitest";
import { createTestDatabase, ensureTemplate } from "../../support/database.ts";

test("a template is built once, and every test gets its own copy", async () => {
  let built = 0;
  const build = async (url: string) => {
    built += 1;
    await run(url, "CREATE TABLE answer AS SELECT 42 AS n");
  };
  await Promise.all([ensureTemplate("support_once", build), ensureTemplate("support_once", build)]);
  expect(built).toBe(1);

  const [one, other] = await Promise.all([
    createTestDatabase({ template: "support_once" }),
    createTestDatabase({ template: "support_once" }),
  ]);
  await run(one.url, "DELETE FROM answer");
  expect(await run(other.url, "SELECT n FROM answer")).toEqual([{ n: 42 }]);
  await one.drop();
  await other.drop();
  await expect(run(one.url, "SELECT 1")).rejects.toMatchObject({ code: "3D000" });
});

test("a template whose build failed is built again", async () => {
  await expect(
    ensureTemplate("support_fails", async (url) => void (await run(url, "CREATE TABLE half (); SELECT 1/0"))),
  ).rejects.toThrow("division by zero");
  await ensureTemplate("support_fails", async (url) => void (await run(url, "CREATE TABLE half ()")));
});

test("a connection left open fails the drop, but the database is dropped all the same", async () => {
  const database = await createTestDatabase();
  const leak = new pg.Client({ connectionString: database.url, application_name: "leaky" });
  leak.on("error", () => {});
  await leak.connect();
  await leak.query("SELECT 'left open'");
  await expect(database.drop()).rejects.toThrow(
    /1 connections left open by the test.*\nleaky: SELECT 'left open'/,
  );
  await leak.end();
  await expect(run(database.url, "SELECT 1")).rejects.toMatchObject({ code: "3D000" });
});

async function run(url: string, text: string): Promise<unknown[]> {
  const client = new pg.Client(url);
  try {
    await client.connect();
    return (await client.query(text)).rows;
  } finally {
    await client.end();
  }
}
