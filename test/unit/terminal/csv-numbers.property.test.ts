import { expect, test } from "vitest";
import { csvRows } from "../../../src/terminal/csv-rows.ts";
import { seed, times } from "../../support/drawn.ts";

const SEED = seed();
const LANGUAGES = [
  { separator: ",", decimal: ".", group: "," },
  { separator: ";", decimal: ",", group: "." },
  { separator: ";", decimal: ",", group: "\u202f" },
  { separator: "\t", decimal: ".", group: "," },
  { separator: "\t", decimal: ",", group: "." },
  { separator: ";", decimal: ".", group: "’" },
] as const;

function randomOf(state: number) {
  let at = state;
  return (most: number) => {
    at = (Math.imul(at, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((at / 2 ** 32) * most);
  };
}

test(`numbers of any language (SEED=${SEED})`, () => {
  const random = randomOf(SEED);
  let read = 0;
  for (let n = 0; n < times(3000); n++) {
    const { separator, decimal, group } = LANGUAGES[random(LANGUAGES.length)] as (typeof LANGUAGES)[number];
    const hasGroups = random(2) === 0;
    const numbers = Array.from({ length: 1 + random(4) }, () => {
      const whole = String(random(10 ** (1 + random(8))));
      const fraction = Array.from({ length: random(6) }, () => random(10)).join("");
      const grouped = hasGroups ? whole.replaceAll(/\B(?=(\d{3})+$)/g, group) : whole;
      const written = `${grouped}${fraction === "" ? "" : decimal}${fraction}`;
      return { written, meant: `${whole}${fraction === "" ? "" : "."}${fraction}` };
    });
    const quoted = (cell: string) => (cell.includes(separator) || random(4) === 0 ? `"${cell}"` : cell);
    const lines = numbers.map(({ written }) => `x${separator}${quoted(written)}\r\n`);
    const content = `name${separator}number\r\n${lines.join("")}`;
    try {
      const rows = csvRows("f.csv", content, { columns: ["name", "number"], numbers: ["number"] });
      const found = rows.map(({ cells }) => cells.number);
      expect(found, JSON.stringify(content)).toEqual(numbers.map(({ meant }) => meant));
      read++;
    } catch (error) {
      if ((error as { code?: string }).code !== "file_invalid") throw error;
      expect((error as Error).message, content).toMatch(/line \d+, column "number": ".*" may be/);
    }
  }
  expect(read).toBeGreaterThan(times(2000));
});
