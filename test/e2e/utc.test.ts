import { describe, expect, test } from "vitest";
import { bench, dayOf, document, envOf, run } from "../support/program.ts";
import { wrongFigures } from "../support/tables.ts";

describe("in any time zone the program uses UTC", () => {
  const abroad = { TZ: "America/St_Johns" };

  test("for the ranges of its options", async () => {
    const args = ["plan", "--from", "2026-03-08T01:00", "--to", "2026-03-09", "--stride", "hour", "--json"];
    const [here, there, offset] = await Promise.all([
      run(args, { TZ: "UTC" }),
      run(args, abroad),
      run(["plan", "--from", "2026-03-07T21:30-03:30", ...args.slice(3)], abroad),
    ]);
    expect(document(here)).toMatchObject([
      { windows: [{ from: "2026-03-08T01:00:00Z", to: "2026-03-09T00:00:00Z" }] },
    ]);
    expect([there.stdout, offset.stdout]).toEqual([here.stdout, here.stdout]);
  });

  test("for what it stores and prints", async () => {
    const made = await bench({ workspaces: [0] });
    const env = { ...envOf(made), ...abroad, PGTZ: "America/St_Johns" };
    expect((await run(["sync", "--inline"], env)).code).toBe(0);
    expect(await wrongFigures(made, { hourDays: 1 })).toEqual([]);
    expect(document(await run(["reconcile", "--json"], env))).toMatchObject([{ differences: [] }]);
    const shown = document(await run(["coverage", "--days", "--json"], env)) as {
      stride: string;
      firstDay: string;
      lastDay: string;
    }[];
    expect(shown.filter(({ firstDay, lastDay }) => firstDay !== lastDay)).toEqual([]);
    const first = shown.filter(({ stride }) => stride === "day").map(({ firstDay }) => firstDay);
    expect(first.sort()[0]).toBe(dayOf(made.dataStart));
  });
});
