import { createServer } from "node:net";
import { describe, expect, onTestFinished, test } from "vitest";
import { createTestDatabase } from "../support/database.ts";
import { listenInTest } from "../support/listen.ts";
import { bench, document, envOf, KEY, PASSWORD, run } from "../support/program.ts";

function piecesIn(text: string, secret: string): string[] {
  const pieces = Array.from({ length: secret.length - 3 }, (_, at) => secret.slice(at, at + 4));
  return pieces.filter((piece) => text.includes(piece));
}

test("a password that would be cut is refused by every command, without a part of it", async () => {
  const secret = "4242#q7ZkW9Xv";
  const env = {
    DATABASE_URL: `postgres://usage:${secret}@127.0.0.1/usage`,
    REDIS_URL: `redis://usage:${secret}@127.0.0.1`,
    USAGE_EXPORT_DIR: `s3://AKIA:${secret}@bucket/prefix`,
    USAGE_ALERT_WEBHOOK_URL: `https://user:${secret}@127.0.0.1/x`,
  };
  const commands = [
    "config",
    "config --json",
    "status",
    "sync --inline --json",
    "serve",
    "doctor",
    "migrate",
  ];
  for (const ended of await Promise.all(commands.map((command) => run(command.split(" "), env)))) {
    expect(ended.code).toBe(2);
    expect(piecesIn(ended.stdout + ended.stderr, secret)).toEqual([]);
    for (const name of Object.keys(env)) expect(ended.stderr).toContain(`${name} `);
    expect(ended.stderr).toContain("# as %23");
  }
});

test("a command ends with 6 if it cannot reach Postgres, the platform, or the platform behind a gateway", async () => {
  const made = await bench();
  const env = envOf(made);
  const sync = (more: object) => run(["sync", "--inline"], { ...env, ...more });
  const resets = await listenInTest(createServer((socket) => void socket.resetAndDestroy()));
  const [postgres, reset, platform] = await Promise.all([
    sync({ DATABASE_URL: `postgres://me:${PASSWORD}@127.0.0.1:1/db` }),
    sync({ DATABASE_URL: `postgres://me:${PASSWORD}@127.0.0.1:${resets}/db` }),
    sync({ USAGE_BASE_URL: "http://127.0.0.1:1" }),
  ]);
  expect([postgres.code, postgres.stderr]).toEqual([
    6,
    expect.stringMatching(/127\.0\.0\.1:1\/db does not respond[\s\S]*\[postgres_unreachable\]/),
  ]);
  expect([reset.code, reset.stderr]).toEqual([6, expect.stringContaining("[postgres_unreachable]")]);
  expect([platform.code, platform.stderr]).toEqual([6, expect.stringContaining("http://127.0.0.1:1/")]);
  made.standin.faults.script({ fault: { kind: "status", status: 502 }, times: 1000 });
  expect((await run(["doctor"], env)).code).toBe(6);
});

describe("the schema", () => {
  test("that is missing is refused with 2; migrate creates it once, even if started three times at once", async () => {
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
    expect((await run(["coverage", "--fail-on-gaps"], env)).code).toBe(4);
  });
});
