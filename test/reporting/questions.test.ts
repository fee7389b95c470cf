import { describe, expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { QUESTIONS } from "../support/questions.ts";
import {
  BUDGET,
  type Cell,
  CHANGED,
  CHANGED_BY,
  dayOf,
  FIRST_PRICED,
  HOURS_FROM,
  LOST,
  PRICE,
  setupQuestions,
} from "../support/questions-month.ts";
import { share } from "../support/share.ts";

/** The twenty questions of docs/bi.md, each against a sum made here from the stand-in's ledger. */

const world = share(setupQuestions);

/** The ledger's cells of the month, of traces unless told otherwise. */
function cells(by: string, has: Partial<Cell> = {}, [from, to] = [0, 31]): Cell[] {
  const { cells: all, start, at } = world();
  const wanted = Object.entries({ meter: "traces", measure: "traces", by, ...has });
  const isWanted = (cell: Cell) => wanted.every(([key, value]) => cell[key as keyof Cell] === value);
  const end = Math.min(at(to), world().end);
  return all.filter(
    (cell) => isWanted(cell) && cell.day >= dayOf(start + from * DAY_MS) && cell.day < dayOf(end),
  );
}

const sum = (all: readonly Cell[]) => all.reduce((total, { amount }) => total + amount, 0);

function sums(all: readonly Cell[], key: (cell: Cell) => string): [string, number][] {
  return [...Map.groupBy(all, key)]
    .map(([name, group]): [string, number] => [name, sum(group)])
    .sort(([a, x], [b, y]) => y - x || a.localeCompare(b));
}

const workspaceName = ({ workspace }: Cell) =>
  world().standin.organisation.workspaces.find(({ id }) => id === workspace)?.name ?? "";
const projectOf = ({ id }: Cell) => world().standin.organisation.projects.find((one) => one.id === id);
const emailOf = ({ id }: Cell) =>
  world().standin.organisation.users.find((one) => one.id === id)?.email ?? id;
const isNamed = ({ id }: Cell) => id !== "";
const sorted = (rows: readonly (readonly unknown[])[]) => rows.map((row) => JSON.stringify(row)).sort();
const pairs = (rows: readonly (readonly unknown[])[], ...columns: number[]) =>
  sorted(rows.map((row) => columns.map((column) => row[column])));

const cents = (amount: unknown) => Math.round(Number(amount) * 10_000) / 10_000;
const priced = () =>
  cells("workspace").filter(
    ({ workspace, day }) => workspace === world().whole.id || day >= dayOf(world().at(FIRST_PRICED)),
  );

test("there are twenty questions", () => {
  expect([...QUESTIONS.keys()]).toEqual(Array.from({ length: 20 }, (_, n) => n + 1));
});

describe("usage", () => {
  test("1. by workspace, with what is missing", async () => {
    const { request, whole, lacking } = world();
    const rows = await request(1);
    const total = ({ id }: { id: string }) => sum(cells("workspace", { workspace: id }));
    expect(sorted(rows)).toEqual(
      sorted([
        [whole.name, total(whole), 0, "t"],
        [lacking.name, total(lacking), 1, "f"],
      ]),
    );
  });

  test("2. by team, with what nobody owns", async () => {
    const { request, project } = world();
    const own = sum(cells("project", { id: project.id }));
    const all = sum(cells("workspace"));
    const percent = (part: number) => Math.round((1000 * part) / all) / 10;
    expect(sorted(await request(2))).toEqual(
      sorted([
        ["search", own, percent(own)],
        ["(unallocated)", all - own, percent(all - own)],
      ]),
    );
  });

  test("3. by project, this week and the week before", async () => {
    const rows = await world().request(3);
    const [before, now] = [cells("project", {}, [7, 14]), cells("project", {}, [14, 21])].map((week) =>
      sums(week.filter(isNamed), (cell) => `${workspaceName(cell)} ${projectOf(cell)?.name} ${cell.id}`),
    ) as [[string, number][], [string, number][]];
    expect(rows.map((row) => row[2])).toEqual(now.slice(0, 10).map(([, traces]) => traces));
    const weekBefore = new Map(before);
    expect(pairs(rows, 2, 3)).toEqual(
      sorted(now.slice(0, 10).map(([name, traces]) => [traces, weekBefore.get(name) ?? null])),
    );
  });

  test("4. by user, with addresses", async () => {
    const expected = sums(cells("user"), (cell) => (isNamed(cell) ? emailOf(cell) : "(none)"));
    expect(sorted(await world().request(4))).toEqual(sorted(expected));
  });

  test("5. by API key, with its last day", async () => {
    const used = cells("api_key").filter(({ id, amount }) => id !== "" && amount > 0);
    const expected = sums(used, ({ id }) => id).map(([id, traces]) => {
      const last = used.filter((cell) => cell.id === id).map(({ day }) => day);
      return [id, traces, last.sort().at(-1)];
    });
    const rows = await world().request(5);
    expect(sorted(rows.filter(([id]) => id !== "(none)"))).toEqual(sorted(expected));
  });

  test("6. by hour of the day", async () => {
    const { standin, request, at, end, whole, lacking } = world();
    const edges = Array.from(
      { length: (end - at(HOURS_FROM)) / HOUR_MS + 1 },
      (_, n) => at(HOURS_FROM) + n * HOUR_MS,
    );
    const hours = new Array<number>(24).fill(0);
    for (const stream of standin.organisation.streams) {
      if (stream.project.workspace !== whole && stream.project.workspace !== lacking) continue;
      for (const [n, traces] of standin.ledger.counts(stream, edges).entries())
        hours[n % 24] = (hours[n % 24] ?? 0) + traces;
    }
    expect(await request(6)).toEqual(hours.map((traces, hour) => [hour, traces]));
  });

  test("7. by application, a tag of projects", async () => {
    const { standin, request, whole, lacking } = world();
    const tags = new Map(
      [whole, lacking].flatMap(({ id }) =>
        standin.tags
          .of(id)
          .filter(({ key }) => key === "Application")
          .flatMap(({ value, resources }) => resources.map((one) => [one.id, value] as const)),
      ),
    );
    const expected = sums(cells("project"), ({ id }) => tags.get(id) ?? "(no tag)");
    expect(expected.length).toBeGreaterThan(1);
    expect(sorted(await request(7))).toEqual(sorted(expected));
  });

  test("8. without a project", async () => {
    const { request, whole, lacking } = world();
    const rows = await request(8);
    const expected = [whole, lacking].map(({ id, name }) => {
      const all = sum(cells("workspace", { workspace: id }));
      return [name, all - sum(cells("project", { workspace: id }).filter(isNamed)), all];
    });
    expect(sorted(rows)).toEqual(sorted(expected));
  });

  test("9. by month", async () => {
    const { request, cells: all, before, start, whole, lacking, daysIn } = world();
    const of = (workspace: string, month: number) =>
      sum(
        all.filter(
          (cell) =>
            cell.meter === "traces" &&
            cell.by === "workspace" &&
            cell.workspace === workspace &&
            cell.day.startsWith(dayOf(month).slice(0, 7)),
        ),
      );
    expect(daysIn).toBeGreaterThan(27);
    expect(sorted(await request(9))).toEqual(
      sorted([
        [dayOf(before), whole.name, of(whole.id, before), 0, "t"],
        [dayOf(before), lacking.name, of(lacking.id, before), 0, "t"],
        [dayOf(start), whole.name, of(whole.id, start), 0, "t"],
        [dayOf(start), lacking.name, null, 1, "f"],
      ]),
    );
  });

  test("10. of deployments", async () => {
    const measured = (measure: string) =>
      new Map(sums(cells("project", { meter: "deployments", measure }), ({ id }) => id));
    const [nodes, runs, uptime] = ["nodes_executed", "agent_runs", "agent_uptime_seconds"].map(measured);
    const rows = await world().request(10);
    const expected = [...(uptime ?? [])].map(([id, seconds]) => [
      nodes?.get(id) ?? 0,
      runs?.get(id) ?? 0,
      seconds,
    ]);
    expect(expected.length).toBeGreaterThan(0);
    expect(pairs(rows, 1, 2, 3)).toEqual(sorted(expected));
  });
});

describe("costs", () => {
  test("11. by team, as it was closed", async () => {
    const { request, project } = world();
    const own = sum(cells("project", { id: project.id })) * PRICE;
    const all = (sum(priced()) - CHANGED_BY) * PRICE;
    const rows = (await request(11)).map(([owner, center, currency, cost]) => [
      owner,
      center,
      currency,
      cents(cost),
    ]);
    expect(sorted(rows)).toEqual(
      sorted([
        ["search", "CC-1", "USD", cents(own)],
        ["(unallocated)", "(none)", "USD", cents(all - own)],
      ]),
    );
  });

  test("12. by project, with the adjustment to what was closed", async () => {
    const { request, lacking, at } = world();
    const isPriced = ({ workspace, day }: Cell) => workspace !== lacking.id || day >= dayOf(at(FIRST_PRICED));
    const expected = sums(cells("project").filter(isPriced), ({ workspace, id }) => `${workspace} ${id}`)
      .map(([, traces]) => cents(traces * PRICE))
      .filter((cost) => cost > 0);
    const rows = await request(12);
    expect(rows.map((row) => cents(row[3]))).toEqual([...expected, cents(-CHANGED_BY * PRICE)]);
    expect(rows.at(-1)?.[1]).toBe("(adjustment)");
  });

  test("13. on the bill, without the workspace that was left out", async () => {
    const { request, whole } = world();
    const traces = sum(cells("workspace", { workspace: whole.id })) - CHANGED_BY;
    const rows = await request(13);
    expect(rows.length).toBeGreaterThan(0);
    expect(
      rows.filter((row) => row[5] !== null).map((row) => [row[2], row[3], row[4], cents(row[5]), row[6]]),
    ).toEqual([[traces, PRICE, "USD", cents(traces * PRICE), 1]]);
  });

  test("14. without a price", async () => {
    const { request, start, lacking } = world();
    const unpriced = cells("workspace", { workspace: lacking.id }, [0, FIRST_PRICED]);
    expect(await request(14)).toEqual([[lacking.name, dayOf(start), FIRST_PRICED, sum(unpriced)]]);
  });

  test("15. of a budget", async () => {
    const { request, project } = world();
    const spent = sum(cells("project", { id: project.id }));
    expect(await request(15)).toEqual([
      [1, "search", null, null, null, BUDGET, spent, Math.round((1000 * spent) / BUDGET) / 10, "f"],
    ]);
  });

  test("16. of long-lived traces", async () => {
    const long = sums(
      cells("project", { meter: "longlived", workspace: world().whole.id }).filter(isNamed),
      ({ id }) => id,
    ).slice(0, 10);
    const all = new Map(sums(cells("project"), ({ id }) => id));
    expect(long.length).toBeGreaterThan(1);
    expect(pairs(await world().request(16), 2, 3)).toEqual(
      sorted(long.map(([id, traces]) => [traces, all.get(id)])),
    );
  });
});

describe("trust", () => {
  test("17. what is missing", async () => {
    const { request, at, lacking } = world();
    const day = dayOf(at(LOST));
    expect(await request(17)).toEqual(
      ["api_key", "project", "user", "workspace"].map((by) => [by, "failed", lacking.id, day, day, 1]),
    );
  });

  test("18. what can be sent", async () => {
    const { request, at, daysIn, whole, lacking } = world();
    const proved = (id: string) =>
      sum(
        cells("workspace", { workspace: id }).filter(
          (cell) => id !== whole.id || cell.day !== dayOf(at(CHANGED)),
        ),
      );
    expect(sorted(await request(18))).toEqual(
      sorted([
        [whole.name, proved(whole.id), daysIn - 1, 1],
        [lacking.name, proved(lacking.id), daysIn - 1, 1],
      ]),
    );
  });

  test("19. what changed when it was final", async () => {
    const { request, at, whole } = world();
    const rows = await request(19);
    expect(rows.map((row) => [row[0], row[1], Number(row[4]) - Number(row[3])])).toEqual([
      [dayOf(at(CHANGED)), whole.id, CHANGED_BY],
    ]);
  });

  test("20. what changed after the close", async () => {
    const { request, whole, whenClosed, start, end } = world();
    const closed = sum(
      whenClosed.filter(
        ({ meter, by, workspace, day }) =>
          meter === "traces" &&
          by === "workspace" &&
          workspace === whole.id &&
          day >= dayOf(start) &&
          day < dayOf(end),
      ),
    );
    expect(pairs(await request(20), 0, 2, 3, 4)).toEqual(
      sorted([[whole.name, closed, CHANGED_BY, closed + CHANGED_BY]]),
    );
  });
});
