import { expect, test } from "vitest";
import { sparkline, timeChart } from "../../../src/service/web/chart.ts";

const days = (traces: readonly (number | null)[], open = 0) =>
  traces.map((one, n) => ({
    at: `2026-03-${String(n + 1).padStart(2, "0")}`,
    value: one,
    isFinal: n < traces.length - open,
  }));
const drawn = async (...given: Parameters<typeof timeChart>) => String(await timeChart(...given));
const size = { width: 400, height: 120, label: "Usage", unit: "traces" };
/** The bars of a kind: where each begins, and how tall it is. */
const barsOf = (svg: string, kind: string) =>
  [...svg.matchAll(new RegExp(`class="${kind}"[^>]* d="([^"]*)"`, "g"))].flatMap(([, d = ""]) =>
    [...d.matchAll(/M([\d.]+) ([\d.]+)V([\d.]+)/g)].map(([, x, from, to]) => ({
      x: Number(x),
      height: Math.round(10 * (Number(from) - Number(to))) / 10,
    })),
  );

test("parts are stacked up to the sum, and a bucket with a part below zero is one bar", async () => {
  const parts = [
    { kind: "s1", name: "A", values: [6, 0, 9] },
    { kind: "s2", name: "B", values: [3, 5, -2] },
  ];
  const svg = await drawn({ ...size, points: days([10, 5, 7]), parts });
  const [a, b, rest] = ["bar s1", "bar s2", "bar rest"].map((kind) => barsOf(svg, kind));
  expect([a?.length, b?.length, rest?.length]).toEqual([1, 2, 2]);
  const unit = (a?.[0]?.height ?? 0) / 6;
  const heights = [a, b, rest].map((bars) => bars?.map(({ height }) => Math.round(height / unit)));
  expect(heights).toEqual([[6], [3, 5], [1, 7]]);
  expect(svg).toContain("<title>2026-03-01: 10 traces\nA: 6\nB: 3</title>");
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
