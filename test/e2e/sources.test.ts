import { describe, expect, onTestFinished, test } from "vitest";
import { startStandin } from "../../src/features/standin/server.ts";
import { bench, dayOf, document, KEY, run } from "../support/program.ts";
import type { Bench } from "../support/source.ts";
import { booked, differences, inStore, together, wrongFigures } from "../support/tables.ts";
import { temporaryFile } from "../support/temporary.ts";

describe("several sources", () => {
  function several(made: Bench, sources: object[]) {
    const common = { dataStart: dayOf(made.dataStart), rateLimit: 1000 };
    const path = temporaryFile(JSON.stringify(sources.map((source) => ({ ...common, ...source }))));
    return { DATABASE_URL: made.databaseUrl, USAGE_SOURCES_FILE: path, USAGE_HOURLY_FOR: "PT24H" };
  }
  async function second(made: Bench) {
    const standin = await startStandin({
      seed: 2,
      apiKey: KEY,
      now: () => made.now,
      dataStart: dayOf(made.dataStart),
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

  test("are loaded independently", async () => {
    const made = await bench();
    const other = await second(made);
    const env = several(made, [sourceOf("eu", made.standin), sourceOf("us", other)]);
    const ended = await run(["sync", "--inline", "--json"], env);
    expect([ended.code, ended.stderr]).toEqual([0, ""]);
    expect(document(ended)).toMatchObject([{ source: "eu" }, { source: "us" }]);
    const book = [made.standin, other].map((standin) =>
      booked({ ...made, standin, workspaceIds: sourceOf("", standin).workspaceIds }, { hourDays: 1 }),
    );
    expect(differences(await inStore(made), together(...book))).toEqual([]);

    const healthy = await run(["status"], env);
    expect(healthy.code).toBe(0);
    expect(healthy.stdout).toMatch(
      /^eu: .*\nto do +\d.* is the first day that is final and not compared.*(\n .*)*\nlast sync .*\ndays +[\d,]+ .*final/m,
    );
    expect(healthy.stdout).not.toContain("PROBLEMS");
    expect(healthy.stdout).toContain("`usage-etl status --source eu` shows everything");
    // So three of them fit the screen of a terminal.
    const lines = healthy.stdout.trim().split("\n");
    expect(lines.length).toBeLessThanOrEqual(16);
    expect(Math.max(...lines.map((line) => line.length))).toBeLessThanOrEqual(80);
    const doctor = document(await run(["doctor", "--source", "us", "--json"], env)) as { source: string }[];
    expect(new Set(doctor.map(({ source }) => source))).toEqual(new Set([null, "us"]));
    // A part of doctor that cannot read its tables says so, and the others are checked.
    await made.sql("ALTER TABLE usage.bill_part RENAME TO bill_part_away");
    const broken = document(await run(["doctor", "--json"], env)) as {
      source: string;
      check: string;
      status: string;
    }[];
    await made.sql("ALTER TABLE usage.bill_part_away RENAME TO bill_part");
    for (const slug of ["eu", "us"]) {
      const own = broken.filter(({ source }) => source === slug);
      expect(own.filter(({ status }) => status === "fail").map(({ check }) => check)).toEqual(["source"]);
      expect(own.map(({ check }) => check)).toContain("finality");
    }
    const third = { ...sourceOf("new", other), workspaceIds: [] };
    const more = several(made, [sourceOf("eu", made.standin), sourceOf("us", other), third]);
    const status = await run(["status"], more);
    expect([status.code, status.stderr]).toEqual([3, expect.stringContaining("Source new was never opened")]);
    const one = await run(["status", "--source", "us", "--json"], more);
    expect([one.code, document(one)]).toEqual([0, [expect.objectContaining({ source: "us" })]]);
    expect(await run(["status", "--source", "nobody"], more)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("Source nobody is neither stored nor configured."),
    });
    const never = await run(["status", "--source", "new"], more);
    expect([never.code, never.stdout.trim()]).toEqual([3, ""]);

    const keyless = { ...sourceOf("eu", made.standin), apiKey: `${KEY}wrong` };
    const wrong = several(made, [keyless, sourceOf("us", other)]);
    expect((await run(["sync", "--inline"], wrong)).code).toBe(5);
    const refused = await run(["status"], wrong);
    expect([refused.code, refused.stdout]).toEqual([5, expect.stringMatching(/^PROBLEMS +refused/m)]);
  });

  test("are loaded even if others fail; the first exit code that applies is returned", async () => {
    const made = await bench();
    const other = await second(made);
    const env = several(made, [
      { ...sourceOf("gone", made.standin), baseUrl: "http://127.0.0.1:1" },
      { ...sourceOf("refused", made.standin), apiKey: `${KEY}wrong` },
      sourceOf("us", other),
    ]);
    const ended = await run(["sync", "--inline", "--json"], env);
    expect(ended.code).toBe(5);
    const errors = ended.stderr.trim().split("\n");
    expect(errors.map((line) => JSON.parse(line))).toMatchObject([
      {
        source: "gone",
        code: "network",
        message: expect.stringContaining("127.0.0.1:1"),
        hint: expect.any(String),
      },
      { source: "refused", code: "unauthorized", message: expect.stringContaining("401") },
    ]);
    expect(document(ended)).toMatchObject([{ source: "us" }]);
    const book = booked(
      { ...made, standin: other, workspaceIds: sourceOf("", other).workspaceIds },
      { hourDays: 1 },
    );
    expect(differences(await inStore(made), book)).toEqual([]);
  });

  test("may not share a workspace: the second is refused with 2, the first is loaded", async () => {
    const made = await bench();
    const env = several(made, [sourceOf("one", made.standin), sourceOf("two", made.standin)]);
    const ended = await run(["sync", "--inline", "--json"], env);
    expect(ended.code).toBe(2);
    expect(ended.stderr).toContain('"code":"workspace_shared"');
    const { workspaceIds } = sourceOf("", made.standin);
    expect(await wrongFigures(made, { hourDays: 1, workspaceIds })).toEqual([]);
  });
});
