import { table } from "../../src/cli/report/output.ts";
import { FLOORS, type Floor } from "./floor.ts";
import type { Round } from "./measure.ts";
import { type Measure, measureOf, median } from "./measures.ts";
import { recordsOf, type Shape } from "./shapes.ts";

interface FloorLine {
  readonly seconds: number;
  /** Median of the rounds' own ratios: both sides of one meet the same moods of the machine. */
  readonly ratio: number;
}

/** Medians over the rounds of one shape and target. */
export interface Line {
  readonly shape: string;
  readonly target: Round["target"];
  readonly records: number;
  readonly answers: number;
  readonly seconds: number;
  readonly floors: Readonly<Partial<Record<Floor["name"], FloorLine>>>;
  readonly recordsPerSecond: number;
  readonly answersPerSecond: number;
  readonly cpuSeconds: number;
  readonly idleMb: number;
  /** The highest of the rounds: a bound is kept always or not at all. */
  readonly peakMb: number;
}

export function summarise(shape: Shape, rounds: readonly Round[]): Line[] {
  return (["empty", "unchanged"] as const).map((target) => {
    const of = rounds.filter((round) => round.target === target);
    const seconds = median(of.map((round) => round.load.ms)) / 1000;
    const answers = of[0]?.load.tasks ?? 0;
    return {
      shape: shape.name,
      target,
      records: recordsOf(shape),
      answers,
      seconds,
      floors: Object.fromEntries(
        FLOORS.flatMap(({ name }) => {
          const both = of.flatMap(({ floors, load }) => {
            const ms = floors[name];
            return ms === undefined ? [] : [{ seconds: ms / 1000, ratio: load.ms / ms }];
          });
          if (both.length === 0) return [];
          return [
            [name, { seconds: median(both.map((b) => b.seconds)), ratio: median(both.map((b) => b.ratio)) }],
          ];
        }),
      ),
      recordsPerSecond: Math.round(recordsOf(shape) / seconds),
      answersPerSecond: answers / seconds,
      cpuSeconds: median(of.map((round) => round.load.cpuMs)) / 1000,
      idleMb: median(of.map((round) => round.load.idleMb)),
      peakMb: Math.max(...of.map((round) => round.load.peakMb)),
    };
  });
}

/** What is held against the release before. */
export function measuresOf(shape: Shape, rounds: readonly Round[]): Measure[] {
  return (["empty", "unchanged"] as const).flatMap((target) => {
    const of = rounds.filter((round) => round.target === target);
    const name = `load, ${shape.about}, ${target === "empty" ? "into an empty table" : "unchanged"}`;
    const ratios = of.flatMap(({ floors, load }) => {
      const ms = floors["same rows"];
      return ms === undefined ? [] : [load.ms / ms];
    });
    const peaks = of.map(({ load }) => load.peakMb);
    return [
      ratios.length > 0
        ? measureOf(name, "psql on the same rows", ratios)
        : measureOf(
            name,
            "ms of CPU an answer",
            of.map(({ load }) => load.cpuMs / load.tasks),
          ),
      measureOf(`${name}, peak memory`, "MB", peaks),
    ];
  });
}

export function describe(lines: readonly Line[]): string {
  const head = ["shape", "table", "records", "answers", "s"];
  const floorHead = FLOORS.flatMap(({ name }) => [name, "x"]);
  return table(
    [...head, ...floorHead, "records/s", "answers/s", "CPU s", "idle MB", "peak MB"],
    lines.map((line) => [
      line.shape,
      line.target,
      line.records,
      line.answers,
      line.seconds.toFixed(2),
      ...FLOORS.flatMap(({ name }) => {
        const floor = line.floors[name];
        return floor === undefined ? [null, null] : [floor.seconds.toFixed(2), floor.ratio.toFixed(2)];
      }),
      line.recordsPerSecond,
      line.answersPerSecond.toFixed(line.answersPerSecond < 10 ? 1 : 0),
      line.cpuSeconds.toFixed(2),
      Math.round(line.idleMb),
      Math.round(line.peakMb),
    ]),
  );
}
