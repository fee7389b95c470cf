import { describe, expect, test } from "vitest";
import { setup, sum } from "./setup.ts";

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

describe("the seeded organisation", () => {
  test("it holds names that break readers of exports", async () => {
    const { standin, usage } = await setup();
    const { workspaces, projects, users, streams, unreadable } = standin.organisation;
    for (const { id } of [...workspaces, ...projects, ...users]) expect(id).toMatch(UUID);
    expect(unreadable).toHaveLength(1);
    const names = projects.map(({ name }) => name).join("\0");
    expect(names).toMatch(/,.*"/);
    for (const part of ["\n", "\r\n", "\0=", "\0+", "\0-", "\0@", "\0\t", "予測"])
      expect(names).toContain(part);
    const first = projects.filter(({ workspace }) => workspace === workspaces[0]).map(({ name }) => name);
    expect(new Set(first).size).toBeLessThan(first.length);
    expect(streams.some(({ user }) => user === null)).toBe(true);
    expect(streams.some(({ key }) => key === null)).toBe(true);
    const homes = users.map(
      (user) => new Set(streams.filter((s) => s.user === user).map((s) => s.project.workspace)),
    );
    expect(homes.some((home) => home.size > 1)).toBe(true);

    const year = await usage({ start: "2026-01-05", end: "2026-09-01" });
    expect(new Set(year.usage.map((r) => r.dimensions.workspace_id)).size).toBe(workspaces.length - 2);
  });

  test("its traffic falls at night and at weekends, grows, and gets a new project in mid-year", async () => {
    const { standin, usage } = await setup();
    const [office] = standin.organisation.workspaces;
    const workspaces = [office?.id ?? ""];
    const hours = await usage({ start: "2026-06-03T00:00:00", end: "2026-06-03T23:00:00", workspaces });
    expect(hours.usage.map((r) => r.time_bucket)).not.toContain("2026-06-03T03:00:00Z");
    expect(hours.usage.map((r) => r.time_bucket)).toContain("2026-06-03T11:00:00Z");
    const day = async (start: string, end: string) => sum(await usage({ start, end, workspaces }));
    expect(await day("2026-06-07", "2026-06-08")).toBeLessThan((await day("2026-06-08", "2026-06-09")) / 2);
    expect(await day("2026-08-03", "2026-08-31")).toBeGreaterThan(await day("2026-02-02", "2026-03-02"));
    const projects = async (start: string, end: string) =>
      new Set((await usage({ start, end, by: "project" })).usage.map((r) => r.dimensions.project_id)).size;
    expect(await projects("2026-02-01", "2026-03-01")).toBeLessThan(
      await projects("2026-07-01", "2026-08-01"),
    );
  });

  test("it has no usage before the data start or in the future, and an hour in progress grows", async () => {
    const { standin, usage } = await setup();
    expect(sum(await usage({ start: "2025-01-01", end: "2026-01-05" }))).toBe(0);
    expect(sum(await usage({ start: "2026-01-05", end: "2026-01-06" }))).toBeGreaterThan(0);
    const hour = { start: "2026-09-16T13:00:00Z", end: "2026-09-16T14:00:00Z" };
    const at = async (time: string): Promise<number> => {
      standin.setClock({ frozenAt: Date.parse(`2026-09-16T${time}Z`) });
      return sum(await usage(hour));
    };
    const grown = [await at("13:00:00"), await at("13:10:00"), await at("13:59:00"), await at("15:00:00")];
    expect(grown[0]).toBe(0);
    expect(grown).toEqual([...grown].sort((a, b) => a - b));
    expect(new Set(grown).size).toBe(4);
    expect(await at("13:10:00")).toBe(grown[1]);
  });

  test("it is as large as the scale says", async () => {
    const { standin } = await setup({ scale: 3 });
    expect(standin.organisation.projects).toHaveLength(5 * 18);
    expect(standin.organisation.users).toHaveLength(75);
    expect(standin.organisation.keys).toHaveLength(18);
  });
});
