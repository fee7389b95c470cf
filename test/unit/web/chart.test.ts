import { expect, test } from "vitest";
import { sparkline, ticksUpTo, timeChart } from "../../../src/service/web/chart.ts";

const days = (traces: readonly (number | null)[], open = 0) =>
  traces.map((one, n) => ({
    at: `2026-03-${String(n + 1).padStart(2, "0")}`,
    value: one,
    isFinal: n < traces.length - open,
  }));
const drawn = async (...given: Parameters<typeof timeChart>) => String(await timeChart(...given));
const size = { width: 400, height: 120, label: "Usage", unit: "traces" };
/** The points of each line of a kind. */
const linesOf = (svg: string, kind: string) =>
  [...svg.matchAll(new RegExp(`class="line ${kind}" d="([^"]*)"`, "g"))].flatMap(([, d = ""]) =>
    d
      .split("M")
      .filter(Boolean)
      .map((one) => one.split("L")),
  );

test("a day that is not loaded breaks the line and is no zero; days that are not final are dashed", async () => {
  const svg = await drawn({ ...size, points: days([10, 20, null, 30, 40, 50], 1) });
  // 1 and 2; then 4 and 5: the third day is in no line.
  expect(linesOf(svg, "final").map((line) => line.length)).toEqual([2, 2]);
  expect(linesOf(svg, "provisional").map((line) => line.length)).toEqual([2]);
  expect(svg.match(/class="gap"/g)).toHaveLength(1);
  expect(svg).toContain("<title>2026-03-03: not fully loaded</title>");
  expect(svg).toContain("<title>2026-03-06: 50 traces, provisional</title>");
  expect(svg).toContain("<title>Usage</title>");
  expect(svg).toContain("Not fully loaded: 2026-03-03. Provisional: 2026-03-06.");
  const bottom = Math.max(...[...svg.matchAll(/class="grid"[^>]* y1="([\d.]+)"/g)].map(([, y]) => Number(y)));
  const ys = [...linesOf(svg, "final"), ...linesOf(svg, "provisional")]
    .flat()
    .map((point) => Number(point.split(" ")[1]));
  expect(ys.every((y) => y < bottom)).toBe(true);
});

test("a day between two gaps is a dot, zero lies on the axis, and what is loaded of a gap is marked", async () => {
  const svg = await drawn({ ...size, points: days([null, 5, null, 0, 5]) });
  expect(svg.match(/<circle class="dot final"/g)).toHaveLength(1);
  const partly = await drawn({
    ...size,
    points: [
      { at: "2026-03-01", value: null, atLeast: 7, isFinal: false },
      { at: "2026-03-02", value: 9, isFinal: true },
    ],
  });
  expect(partly).toContain('class="at-least"');
  expect(partly).toContain("<title>2026-03-01: not fully loaded, at least 7 traces</title>");
});

test("a chart holds no style, script or unescaped text, also without days", async () => {
  const hostile = { ...size, label: `"><script>alert(1)</script>` };
  for (const svg of [
    await drawn({ ...hostile, points: [] }),
    await drawn({ ...hostile, points: days([1]) }),
    String(await sparkline(days([1, null, 3]))),
  ]) {
    expect(svg).not.toMatch(/style=|<script|\son\w+=|NaN|undefined|Infinity/);
  }
});

test("the axis has round steps up to the largest figure", () => {
  expect(ticksUpTo(0)).toEqual([0, 1]);
  expect(ticksUpTo(7)).toEqual([0, 2, 4, 6, 8]);
  expect(ticksUpTo(1_234_567)).toEqual([0, 500_000, 1_000_000, 1_500_000]);
  expect(ticksUpTo(0.0003)).toEqual([0, 0.0001, 0.0002, 0.0003]);
});
