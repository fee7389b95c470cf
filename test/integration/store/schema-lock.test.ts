import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { migrate } from "../../../src/core/store/migrate.ts";
import { setupStore } from "./setup.ts";

async function begun() {
  const { store, url, reader } = await setupStore();
  const report = new pg.Client({ connectionString: url, application_name: "month end" });
  await report.connect();
  onTestFinished(() => report.end());
  await report.query("BEGIN");
  await report.query("SELECT count(*) FROM reporting.fct_usage_workspace_daily");
  return { store, reader, report };
}

test("migrate retries its lock until a running report ends, and then goes on", async () => {
  const { store, reader, report } = await begun();
  let pauses = 0;
  const pause = async () => {
    pauses++;
    await reader.query(
      "SET statement_timeout = '5s'; SELECT count(*) FROM reporting.fct_usage_workspace_daily",
    );
    if (pauses === 2) await report.query("COMMIT");
  };
  expect(await migrate(store, { lockMs: 20, attempts: 3, pause })).toMatchObject({ missingRoles: [] });
  expect(pauses).toBe(2);
});

test("migrate names the process that holds a lock, and changes nothing", async () => {
  const { store, reader, report } = await begun();
  const before = await definitions(reader);
  const { rows } = await report.query("SELECT pg_backend_pid() AS pid");
  await expect(migrate(store, { lockMs: 20, attempts: 2, pause: async () => {} })).rejects.toMatchObject({
    code: "schema_in_use",
    message: expect.stringMatching(
      new RegExp(`Process ${rows[0].pid} \\(.*month end\\) has held (usage|reporting)\\.\\w+ for`),
    ),
    next: expect.stringContaining(`pg_terminate_backend(${rows[0].pid})`),
    retryable: true,
  });
  expect(await definitions(reader)).toEqual(before);
});

async function definitions(reader: pg.Client): Promise<unknown[]> {
  return (
    await reader.query(
      "SELECT oid::text, pg_get_viewdef(oid) FROM pg_class WHERE relkind = 'v' AND relnamespace IN ('reporting'::regnamespace, 'reporting_detail'::regnamespace) ORDER BY 1",
    )
  ).rows;
}
