import { Command } from "commander";
import { addDays, addMonths, daysBetween } from "../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../src/core/domain/time/stride.ts";
import { type DayAmount, FORECAST_METHOD, monthForecast } from "../../src/core/domain/usage/forecast.ts";
import { seedOrganisation } from "../../src/features/standin/engine/seeding.ts";
import { Trend } from "../../src/features/standin/engine/trend.ts";
import { table } from "../../src/terminal/output.ts";
import { median } from "./harness.ts";

/**
 * `npm run bench:forecast`: how far the forecast of a month is from what it came to, on days 5, 10 and 20, beside the constant pace of
 * the days that are over. The histories are those of the stand-in, by project, workspace and organization; the seeds are none that it
 * was made with (1 to 12).
 */

const { seeds, seed } = new Command("bench:forecast")
  .option("--seed <n>", "the first seed", Number, 101)
  .option("--seeds <n>", "so many of them", Number, 24)
  .parse()
  .opts<{ seeds: number; seed: number }>();

const START = "2026-01-05";
const END = "2027-01-01";
const SETTLE_DAYS = 3;
const LEAST = 300;

function histories(seed: number): number[][] {
  const trend = new Trend(seed, Date.parse(START));
  const first = Date.parse(START) / DAY_MS;
  const all = new Map<string, number[]>();
  for (const stream of seedOrganisation({ seed, scale: 1 }).streams) {
    for (const id of [stream.project.id, stream.project.workspace.id, "all"]) {
      const days = all.get(id) ?? Array<number>(daysBetween({ from: START, to: END })).fill(0);
      all.set(id, days);
      for (const n of days.keys()) {
        days[n] = (days[n] ?? 0) + trend.upToDay(stream, first + n + 1) - trend.upToDay(stream, first + n);
      }
    }
  }
  return [...all.values()];
}

const errors = new Map<string, number[]>();
const add = (what: string, said: number, is: number) => {
  const found = errors.get(what) ?? [];
  errors.set(what, found);
  found.push((100 * Math.abs(said - is)) / is);
};
for (let n = seed; n < seed + seeds; n++) {
  for (const history of histories(n)) {
    const at = (day: string) => daysBetween({ from: START, to: day });
    for (let month = "2026-04-01"; month < END; month = addMonths(month, 1)) {
      const sum = (from: string, to: string) =>
        history.slice(at(from), at(to)).reduce((all, one) => all + one, 0);
      const is = sum(month, addMonths(month, 1));
      if (is < LEAST) continue;
      for (const nth of [5, 10, 20]) {
        const today = addDays(month, nth - 1);
        const days = Array.from({ length: 40 }, (_, back): DayAmount => {
          const day = addDays(today, back - 40);
          return { day, amount: history[at(day)] ?? 0, isFinal: back < 40 - SETTLE_DAYS };
        });
        add(`${nth} forecast`, monthForecast(days, today) ?? 0, is);
        add(
          `${nth} pace`,
          (sum(month, today) / (nth - 1)) * daysBetween({ from: month, to: addMonths(month, 1) }),
          is,
        );
      }
    }
  }
}
const shown = (value: number) => `${value.toFixed(2)} %`;
process.stdout.write(
  `${FORECAST_METHOD}\n${table(
    ["day of the month", "months", "median error", "of constant pace", "ratio"],
    [5, 10, 20].map((nth) => {
      const [own, pace] = [`${nth} forecast`, `${nth} pace`].map((what) => median(errors.get(what) ?? []));
      return [
        nth,
        errors.get(`${nth} pace`)?.length ?? 0,
        shown(own ?? 0),
        shown(pace ?? 0),
        ((own ?? 0) / (pace ?? 1)).toFixed(2),
      ];
    }),
  )}\n`,
);
