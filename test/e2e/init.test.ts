import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { dayOf, envOf, KEY, run } from "../support/program.ts";
import { setup } from "../support/source.ts";
import { temporaryFile, temporaryFolder } from "../support/temporary.ts";
import { onTerminal } from "../support/terminal.ts";

const NOWHERE = "http://127.0.0.1:9";
const PASSWORD = "hunter2-typed-by-hand";

const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8);

test("init asks on a terminal until each server works, shows no secret, and the next two commands load", async () => {
  const { standin, databaseUrl, dataStart } = await setup({ standin: { apiKey: KEY } });
  const [file, set] = [
    join(temporaryFolder(), "my.env"),
    [`USAGE_DATA_START=${dayOf(dataStart)}`, "USAGE_HOURLY_FOR=PT24H"],
  ];
  const terminal = onTerminal(["init", "--file", file, ...set.flatMap((one) => ["--set", one])]);
  const response = async (question: string, text: string) => {
    await terminal.shows(question);
    terminal.type(`${text}\r`);
  };
  // What cannot be an address is refused before anything else is asked, and Enter does not give it again.
  const host = "? Billing host of the platform, https://HOST (https://api.smith.langchain.com)";
  await response(host, "127.0.0.1:9");
  await terminal.shows("fail  platform: USAGE_BASE_URL is not an http or https URL. Type it again.");
  await response(host, NOWHERE);
  await response("API key with organization:read", "a-wrong-key");
  await terminal.shows("fail  platform: GET http://127.0.0.1:9/");
  // The host is asked for again, and the key is kept until the platform refuses it.
  await response(`? Billing host of the platform, https://HOST (${NOWHERE})`, standin.url);
  await terminal.shows("[unauthorized]");
  await response(`? Billing host of the platform, https://HOST (${standin.url})`, "");
  await terminal.shows("? API key with organization:read (not shown) [input is masked]");
  terminal.type(`${KEY}\r`);
  await terminal.shows("pass  platform: the key reads usage");
  await response(
    "? Postgres (postgres://usage:*****@127.0.0.1:5432/usage)",
    `postgres://me:${PASSWORD}@127.0.0.1:9/x`,
  );
  await terminal.shows("[postgres_unreachable]");
  await response("? Postgres (postgres://me:*********************@127.0.0.1:9/x)", databaseUrl);
  await response("? Redis, such as", "");
  await terminal.shows("warn  redis: not set");
  expect(await terminal.ended).toBe(0);

  const lines = await terminal.lines();
  expect(lines.slice(-4)).toEqual([
    `Wrote ${file} (mode 600). Next:`,
    `  export USAGE_ENV_FILE=${file}`,
    "  usage-etl migrate",
    "  usage-etl sync --inline",
  ]);
  for (const secret of [KEY, PASSWORD, "a-wrong-key"]) expect(terminal.written()).not.toContain(secret);
  expect(modeOf(file)).toBe("600");
  expect(readdirSync(join(file, ".."))).toEqual(["my.env"]);
  const env = { USAGE_ENV_FILE: file };
  expect(await run(["migrate"], env)).toMatchObject({ code: 0 });
  expect(await run(["sync", "--inline"], env)).toMatchObject({ code: 0 });
  const { code, stderr } = await run(["sync", "--inline"], { ...env, USAGE_BASE_URL: NOWHERE });
  expect([code, stderr]).toEqual([6, expect.stringContaining(NOWHERE)]);
});

test("without a terminal init asks nothing, tries everything, and writes only if all of it works", async () => {
  const bench = await setup({ standin: { apiKey: KEY } });
  const cwd = temporaryFolder();
  const { DATABASE_URL, USAGE_BASE_URL } = envOf(bench) as Record<string, string>;
  const lacking = await run(["init"], {}, { cwd });
  expect([lacking.code, lacking.stdout]).toEqual([2, ""]);
  expect(lacking.stderr).toContain("Give --base-url, --api-key-file, --database-url, or set the variables.");

  const env = { DATABASE_URL, USAGE_BASE_URL, USAGE_API_KEY: KEY } as Record<string, string>;
  const failing = await run(["init", "--base-url", NOWHERE, "--redis-url", "redis://127.0.0.1:9"], env, {
    cwd,
  });
  expect([failing.code, failing.stdout]).toEqual([6, "Nothing was written.\n"]);
  expect(failing.stderr).toMatch(
    /^fail {2}platform: .*\n.*\[network\]\npass {2}postgres: .*\nfail {2}redis: /,
  );
  expect(readdirSync(cwd)).toEqual([]);

  const key = temporaryFile(`${KEY}\n`);
  const secrets = join(cwd, "secrets");
  const given = ["init", "--api-key-file", key, "--secrets", secrets, "--json"];
  const written = await run(given, { DATABASE_URL, USAGE_BASE_URL } as Record<string, string>, { cwd });
  expect(written.code).toBe(0);
  const paths = [join(secrets, "USAGE_API_KEY"), join(secrets, "DATABASE_URL"), join(cwd, "usage-etl.env")];
  expect(JSON.parse(written.stdout)).toMatchObject({
    written: paths,
    next: ["usage-etl migrate", "usage-etl sync --inline"],
  });
  expect(paths.map(modeOf)).toEqual(["600", "600", "600"]);
  expect(modeOf(secrets)).toBe("700");
  const text = readFileSync(join(cwd, "usage-etl.env"), "utf8");
  expect(text).toContain(`USAGE_API_KEY_FILE=${secrets}/USAGE_API_KEY\n`);
  expect(text).not.toContain(KEY);

  const found = await run(["migrate"], { USAGE_ENV_FILE: "" }, { cwd });
  expect(found).toMatchObject({ code: 0 });
  const again = await run(given, env, { cwd });
  expect([again.code, again.stderr]).toEqual([2, expect.stringContaining('"code":"env_file_exists"')]);
  const replaced = await run([...given, "--overwrite", "--set", "USAGE_SYNC_EVERY=PT5M"], env, { cwd });
  expect(replaced.code).toBe(0);
  expect(readFileSync(join(cwd, "usage-etl.env"), "utf8")).toContain("USAGE_SYNC_EVERY=PT5M\n");
});
