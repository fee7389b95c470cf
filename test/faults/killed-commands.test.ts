import { expect, test } from "vitest";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { start } from "../support/cli.ts";
import { poll } from "../support/poll.ts";
import { bench, dayOf, envOf, run } from "../support/program.ts";
import { temporaryFile } from "../support/temporary.ts";

/** Postgres notices that a process is gone, so that its locks do not hold up the next one. */

const PRICES = "sku,unit_price,currency,valid_from\ntraces,0.005,USD,2020-01-01\n";
const OWNERS = "rules:\n  - {workspace: '*', owner: Platform}\n";
const GONE_WITHIN = { deadlineMs: 10_000 };

type Sql = (text: string) => Promise<readonly unknown[]>;

const slowOnce = (table: string) => `CREATE SEQUENCE public.slow;
  CREATE FUNCTION public.slow_once () RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    IF nextval('public.slow') = 1 THEN PERFORM pg_sleep(300); END IF;
    RETURN NULL;
  END $$;
  CREATE TRIGGER slow BEFORE INSERT OR UPDATE OR DELETE ON usage.${table}
  FOR EACH STATEMENT EXECUTE FUNCTION public.slow_once ()`;

async function killAt(
  event: string,
  { sql, args, env }: { sql: Sql; args: readonly string[]; env: Readonly<Record<string, string>> },
): Promise<void> {
  const waiting = async () =>
    (await sql(`SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event = '${event}'`))
      .length;
  const first = start(args, env);
  await Promise.race([
    poll(async () => (await waiting()) > 0, { deadlineMs: 60_000 }),
    first.ended.then(({ stderr }) => Promise.reject(new Error(`it has ended: ${stderr}`))),
  ]);
  first.process.kill("SIGKILL");
  await poll(async () => (await waiting()) === 0, GONE_WITHIN);
}

test.each([
  ["price", ["prices", "import", PRICES]],
  ["owner_rule", ["owners", "apply", OWNERS]],
  ["coverage", ["sync", "--inline"]],
  ["coverage", ["backfill", "--inline", "--from", "FIRST", "--to", "TODAY", "--reprocess", "all"]],
  ["reconciled", ["reconcile", "--from", "FIRST", "--to", "FINAL"]],
  ["entity", ["workspace", "forget", "SECOND", "--with-records"]],
  ["source", ["source", "forget", "default", "--with-records"]],
])("after a kill while it changes usage.%s, the same command works: %j", async (table, words) => {
  const made = await bench({ workspaces: [0, 1] });
  const [kept = "", gone = ""] = made.workspaceIds;
  const { USAGE_BASE_URL, USAGE_API_KEY, ...rest } = envOf(made);
  const platform = words[0] === "source" ? {} : { USAGE_BASE_URL, USAGE_API_KEY };
  if (words[0] !== "sync") expect(await run(["sync", "--inline"], envOf(made))).toMatchObject({ code: 0 });
  const env = { ...rest, ...platform, ...(words.includes("SECOND") ? { USAGE_WORKSPACE_IDS: kept } : {}) };
  const given: Record<string, string> = {
    FIRST: dayOf(made.dataStart),
    FINAL: dayOf(made.today - 3 * DAY_MS),
    TODAY: dayOf(made.today),
    SECOND: gone,
    [PRICES]: temporaryFile(PRICES),
    [OWNERS]: temporaryFile(OWNERS),
  };
  const args = words.map((word) => given[word] ?? word);
  await made.sql(slowOnce(table));
  await killAt("PgSleep", { sql: made.sql, args, env: env as Record<string, string> });
  expect(await run(args, env as Record<string, string>)).toMatchObject({ code: 0 });
});
