import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { usageEtl } from "../../support/cli.ts";
import { createTestDatabase, pastPooler } from "../../support/database.ts";
import { temporaryFile } from "../../support/temporary.ts";

const DASH = "Zürich — 東京";

test.each(["LATIN1", "SQL_ASCII", "WIN1252"])(
  "init, migrate and doctor refuse a database in %s, and name the statement that creates one in UTF-8",
  async (encoding) => {
    const database = await createTestDatabase({
      as: `ENCODING '${encoding}' LOCALE_PROVIDER libc LC_COLLATE 'C' LC_CTYPE 'C'`,
    });
    onTestFinished(database.drop);
    const env = { DATABASE_URL: database.url, USAGE_API_KEY: "a-key-of-a-test" };
    const init = ["init", "--base-url", "http://127.0.0.1:9", "--file", temporaryFile("")];
    let next = "";
    for (const args of [[...init, "--overwrite"], ["migrate"], ["doctor"]]) {
      const { code, stdout, stderr } = await usageEtl(args, env);
      expect([args[0], code]).toEqual([args[0], 2]);
      const said = `${stdout}${stderr}`.replace(/\s+/g, " ");
      expect(said).toMatch(new RegExp(`encoding ${encoding}.*\\[?postgres_encoding`));
      next = /CREATE DATABASE .*?;/.exec(said)?.[0] ?? "";
    }
    const other = new pg.Client({ connectionString: await pastPooler(database.url) });
    await other.connect();
    onTestFinished(() => other.end());
    expect((await other.query("SELECT FROM pg_namespace WHERE nspname = 'usage'")).rowCount).toBe(0);

    await other.query(next);
    const name = /DATABASE (\S+)/.exec(next)?.[1] ?? "";
    onTestFinished(async () => void (await other.query(`DROP DATABASE ${name} WITH (FORCE)`)));
    const url = Object.assign(new URL(database.url), { pathname: `/${name}` }).href;
    expect(await usageEtl(["migrate"], { DATABASE_URL: url })).toMatchObject({ code: 0 });
    const created = new pg.Client({ connectionString: url });
    await created.connect();
    expect((await created.query("SELECT $1 AS name", [DASH])).rows).toEqual([{ name: DASH }]);
    await created.end();
  },
);
