import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { startLocalPostgres } from "../../../src/features/servers/postgres.ts";
import { usageEtl } from "../../support/cli.ts";

const { PATH = "" } = process.env;
const FIGURES = "SELECT count(*)::integer AS days FROM reporting.fct_usage_workspace_daily";
const READER = fileURLToPath(new URL("../../../docs/deploy/monitoring/reader.sql", import.meta.url));

/** Roles belong to a whole server, so these tests have one of their own. */

async function startServer(mayCreateRoles: boolean) {
  const server = await startLocalPostgres({ say: () => {}, env: { PATH } });
  onTestFinished(() => server.close());
  const superuser = new pg.Client({ connectionString: server.url });
  await superuser.connect();
  onTestFinished(() => superuser.end());
  await superuser.query(`CREATE ROLE loader LOGIN PASSWORD 'loader' ${mayCreateRoles ? "" : "NO"}CREATEROLE`);
  await superuser.query("CREATE DATABASE usage OWNER loader");
  const loader = { username: "loader", password: "loader", pathname: "/usage" };
  return { server, superuser, url: Object.assign(new URL(server.url), loader) };
}

test("migrate prints what a superuser must run if its role may not create roles, and goes on", async () => {
  const { superuser, url } = await startServer(false);
  await superuser.query("ALTER DATABASE usage SET idle_in_transaction_session_timeout = '1s'");
  const environment = { DATABASE_URL: "postgres://loader@127.0.0.1:1/usage", DATABASE_MIGRATE_URL: url.href };

  for (const applied of [true, false]) {
    const { code, stdout, stderr } = await usageEtl(["migrate", "--json"], environment);
    expect(code).toBe(0);
    const said = JSON.parse(stdout);
    expect(said.applied.length > 0).toBe(applied);
    expect(said.missingRoles).toEqual([
      "CREATE ROLE usage_reader NOLOGIN;",
      "CREATE ROLE usage_reader_masked NOLOGIN;",
    ]);
    expect(stderr).toContain("A superuser must run");
    for (const statement of said.missingRoles) expect(stderr).toContain(statement);
  }
  const loader = new pg.Client({ connectionString: url.href });
  await loader.connect();
  onTestFinished(() => loader.end());
  expect((await loader.query(FIGURES)).rows).toEqual([{ days: 0 }]);

  const roles = async () => {
    const { code, stdout } = await usageEtl(["doctor", "--json"], {
      DATABASE_URL: environment.DATABASE_MIGRATE_URL,
    });
    const found = (JSON.parse(stdout) as { check: string }[]).find(({ check }) => check === "roles");
    return { exit: code, ...found };
  };
  expect(await roles()).toMatchObject({ status: "warn", code: "roles_missing" });

  for (const [role, others] of [
    ["usage_reader", ["CREATE ROLE usage_reader_masked NOLOGIN;"]],
    ["usage_reader_masked", []],
  ] as const) {
    await superuser.query(`CREATE ROLE ${role} NOLOGIN`);
    if (others.length === 0) {
      expect(await roles()).toMatchObject({ exit: 2, status: "warn", code: "roles_without_rights" });
    }
    const after = await usageEtl(["migrate", "--json"], environment);
    expect(after.code).toBe(0);
    expect(JSON.parse(after.stdout)).toEqual({ applied: [], newer: [], missingRoles: others });
    await superuser.query(`CREATE ROLE analyst LOGIN PASSWORD 'analyst' IN ROLE ${role}`);
    Object.assign(url, { username: "analyst", password: "analyst" });
    const analyst = new pg.Client({ connectionString: url.href });
    await analyst.connect();
    expect((await analyst.query(FIGURES)).rows).toEqual([{ days: 0 }]);
    await analyst.end();
    await superuser.query("DROP ROLE analyst");
  }
  expect(await roles()).toMatchObject({ status: "pass" });
});

const psql = (...args: string[]) =>
  spawnSync("psql", args, { env: { PATH, READER_PASSWORD: "reader" }, encoding: "utf8" });

test.skipIf(psql("--version").status !== 0)(
  "the login of reader.sql finds the views without their schema",
  async () => {
    const { server, url } = await startServer(true);
    expect((await usageEtl(["migrate"], { DATABASE_URL: url.href })).code).toBe(0);
    const admin = Object.assign(new URL(server.url), { pathname: "/usage" });
    for (const _ of ["first", "again"]) {
      const { status, stderr } = psql("--no-psqlrc", "--quiet", "--file", READER, admin.href);
      expect([status, stderr]).toEqual([0, ""]);
    }
    Object.assign(url, { username: "usage_dashboard", password: "reader" });
    const dashboard = new pg.Client({ connectionString: url.href });
    await dashboard.connect();
    onTestFinished(() => dashboard.end());
    expect((await dashboard.query(FIGURES.replace("reporting.", ""))).rows).toEqual([{ days: 0 }]);
  },
);

test("a login that may create roles acts as the readers that it creates", async () => {
  const { url } = await startServer(true);
  const { code, stdout, stderr } = await usageEtl(["migrate", "--json"], { DATABASE_URL: url.href });
  expect(code, stderr).toBe(0);
  expect(JSON.parse(stdout)).toMatchObject({ missingRoles: [] });
  const loader = new pg.Client({ connectionString: url.href });
  await loader.connect();
  onTestFinished(() => loader.end());
  const call =
    "SELECT usage.query_as_usage_reader_masked('SELECT current_user AS me', 0, 1, 1000) AS response";
  expect((await loader.query(call)).rows).toEqual([
    { response: '{"columns":["me"],"rows":[["usage_reader_masked"]],"has_more":false}' },
  ]);
});
