import { writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, onTestFinished, test } from "vitest";
import { DAY_MS } from "../../src/domain/time/stride.ts";
import { startStandin } from "../../src/standin/server.ts";
import { type Ended, start, usageEtl } from "../support/cli.ts";
import { createTestDatabase } from "../support/database.ts";
import { poll } from "../support/poll.ts";
import { eachRecord, startProxy } from "../support/proxy.ts";
import { type Bench, setup } from "../support/source.ts";
import { differences, inLedger, inStore, together } from "../support/tables.ts";

/** The program as a person or a script runs it: exit codes, what is on which stream, and what is on neither. */

const KEY = "lsv2_sk_9f8e7d6c5b4a32100123";
const PASSWORD = "hunter2-of-nobody";
/** Of every run of this file; looked through at its end. */
const outputs: Ended[] = [];
const passwords = new Set([PASSWORD]);

async function run(args: readonly string[], env: Record<string, string> = {}): Promise<Ended> {
  const ended = await usageEtl(args, env);
  outputs.push(ended);
  return ended;
}

async function bench(options: Parameters<typeof setup>[0] = {}): Promise<Bench> {
  const made = await setup({ workspaces: [0, 1], ...options, standin: { apiKey: KEY, ...options.standin } });
  passwords.add(decodeURIComponent(new URL(made.databaseUrl).password));
  return made;
}

function envOf({ databaseUrl, standin, dataStart, workspaceIds }: Bench): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    USAGE_BASE_URL: standin.url,
    USAGE_API_KEY: standin.apiKey,
    USAGE_WORKSPACE_IDS: workspaceIds.join(","),
    USAGE_DATA_START: new Date(dataStart).toISOString().slice(0, 10),
    USAGE_HOURLY_FOR: "PT24H",
    USAGE_RATE_LIMIT: "1000",
  };
}

const routine = ({ standin, dataStart, today, workspaceIds }: Bench) =>
  together(
    inLedger(standin, { stride: "day", range: { start: dataStart, end: today + DAY_MS }, workspaceIds }),
    inLedger(standin, {
      stride: "hour",
      range: { start: today - DAY_MS, end: today + DAY_MS },
      workspaceIds,
    }),
  );

/** Exactly one JSON document. */
function document({ stdout }: Ended): unknown {
  expect(stdout).toMatch(/^[[{].*\n$/s);
  return JSON.parse(stdout);
}

afterAll(() => {
  for (const { stdout, stderr } of outputs) {
    for (const secret of [KEY, ...passwords]) {
      if (secret !== "") expect(stdout + stderr).not.toContain(secret);
    }
    // Nothing here is a terminal.
    expect(stdout + stderr).not.toContain("\u001b");
  }
});

describe("a wrong command line ends with 2 and says what is wrong, on stderr alone", () => {
  const range = ["--from", "2026-03-01", "--to", "2026-03-04"];
  test.each([
    [["plan", ...range, "--strid", "day"], /unknown option '--strid'[\s\S]*Did you mean --stride/],
    [["plann"], /unknown command 'plann'[\s\S]*Did you mean plan/],
    [["plan", ...range, "--stride", "fortnight"], /fortnight[\s\S]*hour, day, week, month, year/],
    [["plan", "--from", "2026-03-04", "--to", "2026-03-01"], /--from 2026-03-04.* is not before/],
    [["plan", "--from", "01.03.2026", "--to", "2026-03-04"], /01\.03\.2026/],
    [["plan", "--from", "2026-03-01"], /--to is missing/],
  ])("%j", async (args, message) => {
    const { code, stdout, stderr } = await run(args);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toMatch(message);
  });

  test("help is no mistake", async () => {
    const { code, stdout } = await run(["backfill", "--help"]);
    expect(code).toBe(0);
    expect(stdout).toContain("--reprocess");
  });
});

describe("configuration", () => {
  test("that is wrong is refused as a whole, with all that is wrong", async () => {
    const { code, stderr } = await run(["sync", "--inline"], {
      USAGE_BASE_URL: "ftp://x",
      USAGE_API_KY: KEY,
      USAGE_SETTLE_AFTER: "soon",
      DATABASE_URL: `postgres://me:${PASSWORD}@127.0.0.1:1/db`,
      DATABASE_URL_FILE: "/run/secrets/url",
    });
    expect(code).toBe(2);
    for (const said of [
      "USAGE_BASE_URL is not an http",
      "did you mean USAGE_API_KEY?",
      "USAGE_SETTLE_AFTER is not",
      "DATABASE_URL and DATABASE_URL_FILE are both set",
    ])
      expect(stderr).toContain(said);
  });

  test("that is missing is named in one go", async () => {
    const { code, stderr } = await run(["sync", "--inline"]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/USAGE_BASE_URL and USAGE_API_KEY[\s\S]*DATABASE_URL/);
  });

  test("is shown without its secrets", async () => {
    const env = {
      USAGE_BASE_URL: "https://api.example.com",
      USAGE_API_KEY: KEY,
      DATABASE_URL: `postgres://me:${PASSWORD}@127.0.0.1:1/db`,
    };
    const [text, json] = await Promise.all([run(["config"], env), run(["config", "--json"], env)]);
    for (const { code, stdout } of [text, json]) {
      expect(code).toBe(0);
      expect(stdout).toContain("https://api.example.com");
      expect(stdout).toContain("[redacted]");
    }
    document(json);
  });
});

describe("a server out of reach ends with 6", () => {
  test("Postgres", async () => {
    const { code, stderr } = await run(["sync", "--inline"], {
      DATABASE_URL: `postgres://me:${PASSWORD}@127.0.0.1:1/db`,
      USAGE_BASE_URL: "http://127.0.0.1:1",
      USAGE_API_KEY: KEY,
    });
    expect(code).toBe(6);
    expect(stderr).toMatch(/127\.0\.0\.1:1\/db does not answer[\s\S]*\[postgres_unreachable\]/);
  });

  test("the platform", async () => {
    const made = await bench();
    const env = { ...envOf(made), USAGE_BASE_URL: "http://127.0.0.1:1" };
    const { code, stderr } = await run(["sync", "--inline"], env);
    expect(code).toBe(6);
    expect(stderr).toContain("http://127.0.0.1:1/");
  });

  test("a gateway without a platform behind it", async () => {
    const made = await bench();
    made.standin.faults.script({ fault: { kind: "status", status: 502 }, times: 1000 });
    expect((await run(["doctor"], envOf(made))).code).toBe(6);
  });
});

describe("the schema", () => {
  test("that is missing ends with 2 and names migrate, which may be started three times at once", async () => {
    const database = await createTestDatabase();
    onTestFinished(() => database.drop());
    const env = { DATABASE_URL: database.url, USAGE_BASE_URL: "http://127.0.0.1:1", USAGE_API_KEY: KEY };
    const outdated = await run(["sync", "--inline"], env);
    expect(outdated.code).toBe(2);
    expect(outdated.stderr).toMatch(/usage-etl migrate[\s\S]*\[schema_outdated\]/);
    expect((await run(["status"], env)).code).toBe(2);

    const migrations = await Promise.all([1, 2, 3].map(() => run(["migrate", "--json"], env)));
    expect(migrations.map(({ code }) => code)).toEqual([0, 0, 0]);
    const applied = migrations.map((ended) => (document(ended) as { applied: string[] }).applied.length);
    expect(applied.filter((count) => count > 0)).toHaveLength(1);
    const status = await run(["status"], env);
    expect([status.code, status.stdout]).toEqual([0, expect.stringContaining("No source was ever opened")]);
    // Nothing is known is no gap-free coverage.
    expect((await run(["coverage", "--fail-on-gaps"], env)).code).toBe(4);
  });
});

describe("a day of work", () => {
  test("sync, look, reconcile, mend: each with one JSON document and its exit code", async () => {
    const made = await bench();
    const env = envOf(made);
    const quiet = async (args: string[], exit = 0) => {
      const ended = await run([...args, "--json"], env);
      expect([args.join(" "), ended.code, ended.stderr]).toEqual([args.join(" "), exit, ""]);
      return document(ended);
    };
    const synced = await quiet(["sync", "--inline"]);
    expect(synced).toMatchObject({ default: { failures: [], counts: expect.any(Array) } });
    expect(differences(await inStore(made), routine(made))).toEqual([]);

    expect(await quiet(["coverage", "--fail-on-gaps"])).not.toEqual([]);
    expect(await quiet(["status"])).toMatchObject([{ source: "default", refused: null, failures: [] }]);
    expect(await quiet(["doctor"])).toEqual(expect.arrayContaining([expect.objectContaining({ ok: true })]));
    expect(await quiet(["reconcile"])).toMatchObject({ default: { differences: [] } });

    const first = new Date(made.dataStart).toISOString().slice(0, 10);
    const range = ["--from", first, "--to", new Date(made.dataStart + DAY_MS).toISOString().slice(0, 10)];
    await made.sql("UPDATE usage.dated_record SET traces = traces + 1 WHERE bucket_start = $1::date", [
      first,
    ]);
    const mismatch = (await quiet(["reconcile", ...range], 4)) as { default: { differences: unknown[] } };
    expect(mismatch.default.differences.length).toBeGreaterThan(0);
    expect(await quiet(["reconcile", ...range, "--repair"])).toMatchObject({ default: { differences: [] } });
    expect(differences(await inStore(made), routine(made))).toEqual([]);

    // A day's coverage and records are lost: a gap, which a dry run counts and a backfill fills.
    await made.sql(
      `DELETE FROM usage.coverage c USING usage.scope s
       WHERE s.scope_id = c.scope_id AND s.stride = 'day' AND period_start = $1`,
      [new Date(made.dataStart).toISOString()],
    );
    await made.sql("DELETE FROM usage.dated_record WHERE bucket_start = $1::date", [first]);
    await quiet(["coverage", "--fail-on-gaps"], 4);
    // One request by workspace, and one for each of two workspaces by project, user and key.
    expect(await quiet(["backfill", ...range, "--dry-run"])).toMatchObject({ default: { requests: 7 } });
    await quiet(["backfill", ...range, "--inline"]);
    await quiet(["coverage", "--fail-on-gaps"]);
    expect(differences(await inStore(made), routine(made))).toEqual([]);
  });

  test("backfill refuses what cannot hold usage", async () => {
    const made = await bench({ workspaces: [0] });
    const env = envOf(made);
    const ends = await Promise.all(
      [
        ["--from", "2025-01-01", "--to", "2025-02-01"],
        ["--from", "2090-01-01", "--to", "2090-02-01"],
        ["--from", "2026-01-05", "--to", "2090-02-01", "--workspace", "11111111-1111-1111-1111-111111111111"],
      ].map((args) => run(["backfill", ...args, "--inline"], env)),
    );
    expect(ends.map(({ code }) => code)).toEqual([2, 2, 2]);
    expect(ends.map(({ stderr }) => /\[(\w+)\]/.exec(stderr)?.[1])).toEqual([
      "range_without_data",
      "range_without_data",
      "workspace_unknown",
    ]);
  });

  test("a failed slice ends with 3, in sync and in status, and the rest is loaded", async () => {
    const made = await bench({ workspaces: [0] });
    const proxy = await startProxy(
      made.standin.url,
      eachRecord((record, url) =>
        url.searchParams.get("group_by") === "user" &&
        Date.parse(record.time_bucket) === made.dataStart &&
        record.traces > 0
          ? { ...record, traces: -record.traces }
          : record,
      ),
    );
    const env = { ...envOf(made), USAGE_BASE_URL: proxy.url };
    const synced = await run(["sync", "--inline", "--json"], env);
    expect(synced.code).toBe(3);
    expect(document(synced)).toMatchObject({ default: { failures: [{ code: "answer_invalid" }] } });
    // The log is JSON lines on the other stream.
    for (const line of synced.stderr.trim().split("\n")) expect(JSON.parse(line)).toHaveProperty("level");
    const status = await run(["status"], env);
    expect([status.code, status.stdout]).toEqual([3, expect.stringContaining("answer_invalid")]);
    expect((await run(["coverage", "--fail-on-gaps"], env)).code).toBe(4);
    const text = await run(
      ["backfill", "--from", "2026-01-05", "--to", "2090-01-01", "--reprocess", "all", "--inline"],
      env,
    );
    expect([text.code, text.stdout]).toEqual([3, expect.stringMatching(/failed: user day .*traces = -\d+/)]);
  });

  test("a refused key ends with 5 and is kept for status; the log at debug does not show it", async () => {
    const made = await bench({ workspaces: [0] });
    const env = { ...envOf(made), USAGE_LOG_LEVEL: "debug" };
    made.standin.faults.script({ fault: { kind: "reset" }, times: 2, skip: 3 });
    expect((await run(["sync", "--inline"], env)).code).toBe(0);
    const wrong = await run(["sync", "--inline"], { ...env, USAGE_API_KEY: `${KEY}wrong` });
    expect(wrong.code).toBe(5);
    expect(wrong.stderr).toMatch(/answered 401[\s\S]*USAGE_API_KEY[\s\S]*\[unauthorized\]/);
    const status = await run(["status"], env);
    expect([status.code, status.stdout]).toEqual([5, expect.stringContaining("refuses the key")]);
    expect((await run(["doctor", "--json"], { ...env, USAGE_API_KEY: `${KEY}wrong` })).code).toBe(5);
    expect((await run(["sync", "--inline"], env)).code).toBe(0);
    expect((await run(["status"], env)).code).toBe(0);
  });

  test("two rounds at the same time end in the tables of one", async () => {
    const made = await bench();
    const rounds = await Promise.all([1, 2].map(() => run(["sync", "--inline"], envOf(made))));
    expect(rounds.map(({ code, stderr }) => [code, stderr])).toEqual([
      [0, ""],
      [0, ""],
    ]);
    expect(differences(await inStore(made), routine(made))).toEqual([]);
  });

  test("Ctrl-C ends it soon, keeps what was loaded and leaves nothing running", async () => {
    const made = await bench({ workspaces: [0] });
    made.standin.faults.script({
      fault: { kind: "hang" },
      times: 1000,
      match: { path: "granular-usage", query: { group_by: "api_key" } },
    });
    const running = start(["sync", "--inline"], envOf(made));
    await poll(
      async () => (await made.sql("SELECT FROM usage.fetch WHERE group_by = 'api_key'")).length > 0,
      {
        deadlineMs: 20_000,
      },
    );
    running.process.kill("SIGINT");
    const ended = await running.ended;
    outputs.push(ended);
    expect([ended.code, ended.stderr]).toEqual([1, expect.stringContaining("[interrupted]")]);
    made.standin.faults.clear();
    expect((await run(["sync", "--inline"], envOf(made))).code).toBe(0);
    expect(differences(await inStore(made), routine(made))).toEqual([]);
  });
});

describe("time is UTC wherever the program runs", () => {
  const abroad = { TZ: "America/St_Johns" };

  test("in what is asked for", async () => {
    const args = ["plan", "--from", "2026-03-08T01:00", "--to", "2026-03-09", "--stride", "hour", "--json"];
    const [here, there, offset] = await Promise.all([
      run(args, { TZ: "UTC" }),
      run(args, abroad),
      run(["plan", "--from", "2026-03-07T21:30-03:30", ...args.slice(3)], abroad),
    ]);
    expect(document(here)).toMatchObject({ windows: [{ from: "2026-03-08T01:00Z", to: "2026-03-09" }] });
    expect([there.stdout, offset.stdout]).toEqual([here.stdout, here.stdout]);
  });

  test("and in what is stored and shown", async () => {
    const made = await bench({ workspaces: [0] });
    const env = { ...envOf(made), ...abroad, PGTZ: "America/St_Johns" };
    expect((await run(["sync", "--inline"], env)).code).toBe(0);
    expect(differences(await inStore(made), routine(made))).toEqual([]);
    expect(document(await run(["reconcile", "--json"], env))).toMatchObject({ default: { differences: [] } });
    const shown = document(await run(["coverage", "--json"], env)) as { stride: string; firstDay: string }[];
    const first = shown.filter(({ stride }) => stride === "day").map(({ firstDay }) => firstDay);
    expect(first.sort()[0]).toBe(new Date(made.dataStart).toISOString().slice(0, 10));
  });
});

describe("colour", () => {
  test("is never written to what is no terminal, NO_COLOR or not", async () => {
    const args = ["plan", "--from", "2026-03-01", "--to", "2026-03-04"];
    const ends = await Promise.all([
      run(args, { NO_COLOR: "1" }),
      run(args),
      run(args, { TERM: "xterm-256color" }),
    ]);
    expect(new Set(ends.map(({ stdout }) => stdout)).size).toBe(1);
  });
});

describe("several sources", () => {
  async function several(made: Bench, sources: object[]) {
    const dir = await mkdtemp(join(tmpdir(), "usage-etl-sources-"));
    onTestFinished(() => rm(dir, { recursive: true }));
    const path = join(dir, "sources.json");
    const dataStart = new Date(made.dataStart).toISOString().slice(0, 10);
    writeFileSync(path, JSON.stringify(sources.map((source) => ({ dataStart, rateLimit: 1000, ...source }))));
    return { DATABASE_URL: made.databaseUrl, USAGE_SOURCES_FILE: path, USAGE_HOURLY_FOR: "PT24H" };
  }
  async function second(made: Bench) {
    const standin = await startStandin({
      seed: 2,
      apiKey: KEY,
      now: () => made.now,
      dataStart: new Date(made.dataStart).toISOString().slice(0, 10),
    });
    onTestFinished(() => standin.close());
    return standin;
  }
  const sourceOf = (
    slug: string,
    standin: { url: string; organisation: Bench["standin"]["organisation"] },
  ) => ({
    slug,
    baseUrl: standin.url,
    apiKey: KEY,
    workspaceIds: standin.organisation.workspaces.slice(0, 1).map(({ id }) => id),
  });

  test("are loaded side by side, each by its own ledger", async () => {
    const made = await bench();
    const other = await second(made);
    const env = await several(made, [sourceOf("eu", made.standin), sourceOf("us", other)]);
    const ended = await run(["sync", "--inline", "--json"], env);
    expect([ended.code, ended.stderr]).toEqual([0, ""]);
    expect(Object.keys(document(ended) as object)).toEqual(["eu", "us"]);
    const book = [made.standin, other].map((standin) =>
      routine({ ...made, standin, workspaceIds: sourceOf("", standin).workspaceIds }),
    );
    expect(differences(await inStore(made), together(...book))).toEqual([]);
  });

  test("do not hold each other up, and the first exit code that applies is the program's", async () => {
    const made = await bench();
    const other = await second(made);
    const env = await several(made, [
      { ...sourceOf("gone", made.standin), baseUrl: "http://127.0.0.1:1" },
      { ...sourceOf("refused", made.standin), apiKey: `${KEY}wrong` },
      sourceOf("us", other),
    ]);
    const ended = await run(["sync", "--inline", "--json"], env);
    expect(ended.code).toBe(5);
    expect(ended.stderr).toMatch(/gone: .*127\.0\.0\.1:1[\s\S]*refused: .*401/);
    expect(Object.keys(document(ended) as object)).toEqual(["us"]);
    const book = routine({ ...made, standin: other, workspaceIds: sourceOf("", other).workspaceIds });
    expect(differences(await inStore(made), book)).toEqual([]);
  });

  test("that share a workspace are refused with 2; the first is loaded", async () => {
    const made = await bench();
    const env = await several(made, [sourceOf("one", made.standin), sourceOf("two", made.standin)]);
    const ended = await run(["sync", "--inline", "--json"], env);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain("[workspace_shared]");
    const { workspaceIds } = sourceOf("", made.standin);
    expect(differences(await inStore(made), routine({ ...made, workspaceIds }))).toEqual([]);
  });
});
