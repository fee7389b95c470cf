import { Command } from "commander";
import { addDays } from "../../src/core/domain/time/days.ts";
import { UNUSUAL_METHOD, unusualDays } from "../../src/core/domain/usage/unusual.ts";
import { dice } from "../../src/features/standin/engine/random.ts";
import { table } from "../../src/terminal/output.ts";

/**
 * `npm run bench:unusual`: how many of the unusual days of made series are found, and how many found ones are none, by threshold. Three
 * of five series have weekends; noise of 3 to 33 %, growth, a new level in one of four, days of 1.5 to 3.5 times or 0.1 to 0.6 times
 * what they would have had. The seeds are none that the method was tuned with (1 to 200).
 */

const { seeds, seed } = new Command("bench:unusual")
  .option("--seed <n>", "the first seed", Number, 2001)
  .option("--seeds <n>", "so many of them", Number, 600)
  .parse()
  .opts<{ seeds: number; seed: number }>();

const FIRST = "2026-01-05";
const DAYS = 240;
const JUDGED_FROM = 60;

interface Made {
  readonly amounts: readonly number[];
  readonly unusual: ReadonlySet<number>;
  readonly shift: number | null;
}

function series(seed: number): Made {
  const { next } = dice(seed);
  const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  const mean = Math.exp(Math.log(30) + next() * Math.log(3000));
  const [noise, growth] = [0.03 + 0.3 * next() ** 2, (next() - 0.3) * 0.08];
  const weekend = next() < 0.6 ? 0.05 + 0.5 * next() : 1;
  const shift = next() < 0.25 ? 90 + Math.floor(next() * 100) : null;
  const level = next() < 0.5 ? 0.5 : 1.8;
  const unusual = new Set(shift === null ? [] : [shift]);
  const amounts = Array.from({ length: DAYS }, (_, n) => {
    const ofWeekday = n % 7 >= 5 ? weekend : 1;
    const ofLevel = shift !== null && n >= shift ? level : 1;
    const is = mean * ofLevel * ofWeekday * (1 + (growth * n) / 30) * Math.exp(noise * normal());
    const counted = Math.max(0, Math.round(is + Math.sqrt(Math.max(is, 0)) * normal()));
    if (n < JUDGED_FROM || next() >= 0.012) return counted;
    unusual.add(n);
    return Math.round(counted * (next() < 0.7 ? 1.5 + 2 * next() : 0.1 + 0.5 * next()));
  });
  return { amounts, unusual, shift };
}

const made = Array.from({ length: seeds }, (_, n) => series(seed + n));
const lines = [2.5, 2.75, 3, 3.25, 3.5, 4].map((threshold) => {
  const sum = { right: 0, wrong: 0, missed: 0, days: 0 };
  const ofShifts: number[] = [];
  for (const { amounts, unusual, shift } of made) {
    const days = amounts.map((amount, n) => ({ day: addDays(FIRST, n), amount, isFinal: true }));
    const found = unusualDays(days, threshold).map(({ day }) => days.findIndex((one) => one.day === day));
    const right = found.filter((n) => unusual.has(n));
    const isOfShift = (n: number) =>
      shift !== null && n >= shift && n < shift + 14 && (n === shift || !unusual.has(n));
    const ofShift = found.filter(isOfShift).length;
    if (shift !== null) ofShifts.push(ofShift);
    sum.right += right.length;
    sum.wrong += found.filter((n) => !unusual.has(n) && !(isOfShift(n) && n === (shift ?? 0) + 1)).length;
    sum.missed += unusual.size - right.length;
    sum.days += DAYS - JUDGED_FROM;
  }
  return [
    threshold,
    (sum.right / (sum.right + sum.wrong)).toFixed(2),
    (sum.right / (sum.right + sum.missed)).toFixed(2),
    ((100 * sum.wrong) / sum.days).toFixed(2),
    `${((100 * ofShifts.filter((alarms) => alarms <= 2).length) / ofShifts.length).toFixed(0)} %`,
  ];
});
process.stdout.write(
  `${UNUSUAL_METHOD}\n${table(["threshold", "precision", "recall", "false in 100 days", "new levels with at most two"], lines)}\n`,
);
