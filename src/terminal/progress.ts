import { type Clock, describeDuration, systemClock } from "../core/base/clock.ts";
import { printable } from "../core/base/printable.ts";

/** Without a total only `done` is shown. `paused`: no work is expected now. */
export type Update = (progress: Progress) => void;

export interface Progress {
  readonly done: number;
  readonly total?: number;
  readonly paused?: boolean;
}

export interface Counted {
  readonly label: string;
  readonly unit: string;
}

const DRAW_AFTER_MS = 1000;
const DRAW_EVERY_MS = 100;
const SMOOTHED_OVER_MS = 10_000;
const MEASURED_OVER_MS = 500;
const BAR = 20;

type Terminal = Pick<NodeJS.WriteStream, "write" | "columns">;

/** A bar on the last line of a terminal. Other output must go through `above`, so that it does not break the bar. */
export function createBar(terminal: Terminal, clock: Pick<Clock, "now"> = systemClock) {
  let drawn = false;
  const clear = () => {
    if (drawn) terminal.write("\r\u001b[K");
    drawn = false;
  };
  return {
    above: (text: string) => {
      clear();
      terminal.write(text);
    },
    async show<T>(what: Counted, work: (update: Update) => Promise<T>): Promise<T> {
      const pace = createPace(clock);
      const startedAt = clock.now();
      let latest: Progress | undefined;
      const draw = () => {
        if (latest === undefined || clock.now() - startedAt < DRAW_AFTER_MS) return;
        pace.note(latest);
        const line = printable(lineOf(what, latest, pace)).slice(0, (terminal.columns || 80) - 1);
        terminal.write(`\r${line}\u001b[K`);
        drawn = true;
      };
      const timer = setInterval(draw, DRAW_EVERY_MS);
      try {
        return await work((progress) => {
          latest = progress;
        });
      } finally {
        clearInterval(timer);
        clear();
      }
    },
  };
}

interface Pace {
  readonly rate: () => number | undefined;
}

function createPace({ now }: Pick<Clock, "now">): Pace & { note(progress: Progress): void } {
  let before: { done: number; at: number } | undefined;
  let rate: number | undefined;
  return {
    rate: () => rate,
    note({ done, paused = false }) {
      const at = now();
      if (before === undefined || paused) {
        before = { done, at };
        return;
      }
      const ms = at - before.at;
      if (ms < MEASURED_OVER_MS) return;
      const measured = ((done - before.done) / ms) * 1000;
      const weight = 1 - Math.exp(-ms / SMOOTHED_OVER_MS);
      rate = rate === undefined ? measured : rate + weight * (measured - rate);
      before = { done, at };
    },
  };
}

function lineOf({ label, unit }: Counted, { done, total, paused = false }: Progress, pace: Pace): string {
  const rate = pace.rate();
  const count = (number: number) => number.toLocaleString("en-US");
  const speed = rate === undefined ? "" : ` ${rate < 10 ? rate.toFixed(1) : count(Math.round(rate))}/s`;
  if (total === undefined) return `${label}: ${count(done)} ${unit}${paused ? " paused" : speed}`;
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.round(share * BAR);
  const bar = `${"=".repeat(filled)}${filled < BAR ? ">" : ""}`.slice(0, BAR).padEnd(BAR, "-");
  const left =
    rate === undefined || rate < 0.001 || done >= total
      ? ""
      : `, ${describeDuration(Math.ceil((total - done) / rate) * 1000)} left`;
  const how = paused ? " paused" : `${speed}${left}`;
  return `${label} [${bar}] ${count(done)}/${count(total)} ${unit} ${Math.floor(share * 100)}%${how}`;
}
