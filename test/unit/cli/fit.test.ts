import { expect, onTestFinished, test } from "vitest";
import { fitted, table, withoutZeros } from "../../../src/cli/report/output.ts";

test("columns with nothing but zeros, or nothing at all, are left out", () => {
  const head = ["dimension", "failed", "retired", "reason"];
  const rows = [
    ["user", 0, 3, null],
    ["project", 0, 0, "-"],
  ];
  expect(withoutZeros(head, rows)).toEqual([
    ["dimension", "retired"],
    [
      ["user", 3],
      ["project", 0],
    ],
  ]);
});

test("the longest texts are cut until the table fits; a short one never is", () => {
  const rows = [
    ["kind", "id", "name"],
    ["differs", "4340c6dc-954e-4ef4-a1e8-f73cc1826017", "search"],
  ];
  expect(fitted(rows, 30)).toEqual([
    ["kind", "id", "name"],
    ["differs", "4340c6dc-954…", "search"],
  ]);
  expect(fitted(rows, 53)).toEqual(rows);
  expect(fitted(rows, undefined)).toEqual(rows);
  expect(fitted(rows, 4)[1]).toEqual(["differs", "4340c6d…", "search"]);
});

test("a table is no wider than the terminal, and whole in a pipe", () => {
  const { isTTY, columns } = process.stdout;
  onTestFinished(() => void Object.assign(process.stdout, { isTTY, columns }));
  const id = "4340c6dc-954e-4ef4-a1e8-f73cc1826017";
  const widthOn = (terminal: object) => {
    Object.assign(process.stdout, terminal);
    const row = [id, id, 1_234_567];
    const lines = table(["workspace", "project", "traces"], [row, row]).split("\n");
    return Math.max(...lines.map((line) => line.length));
  };
  expect(widthOn({ isTTY: true, columns: 80 })).toBe(80);
  expect(widthOn({ isTTY: false, columns: 80 })).toBe(2 * 36 + 9 + 2 * 2);
});

test("one row that is wider than the terminal is a list, with its ids whole", () => {
  const { isTTY, columns } = process.stdout;
  onTestFinished(() => void Object.assign(process.stdout, { isTTY, columns }));
  const id = "4340c6dc-954e-4ef4-a1e8-f73cc1826017";
  Object.assign(process.stdout, { isTTY: true, columns: 80 });
  expect(table(["state", "context", "task"], [["completed", id, id]])).toBe(
    `state    completed\ncontext  ${id}\ntask     ${id}`,
  );
  expect(table(["state", "task"], [["completed", id]]).split("\n")).toHaveLength(2);
});
