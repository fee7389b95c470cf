import type { PlannedWindow } from "../../domain/planning/planned-windows.ts";
import { HOUR_MS, STRIDES } from "../../domain/time/stride.ts";
import { GROUPINGS } from "../../domain/usage/record.ts";

/** A form holds some 100 kB of them. */
const MOST = 4000;
const NUMBER = "[0-9a-z]{1,8}";
const WINDOW = new RegExp(`^[0-4](\\.${NUMBER}){${2 + GROUPINGS.length}}$`);

/** The windows of a plan as a short text, for a form; empty where they are too many for one. */
export function writeWindows(windows: readonly PlannedWindow[]): string {
  if (windows.length > MOST) return "";
  return windows
    .map(({ stride, start, end, requests }) =>
      [STRIDES.indexOf(stride), start / HOUR_MS, (end - start) / HOUR_MS, ...requests]
        .map((number) => number.toString(36))
        .join("."),
    )
    .join("_");
}

/** Undefined for a text that `writeWindows` did not write, and for windows that were too many. */
export function readWindows(text: string): PlannedWindow[] | undefined {
  const parts = text.split("_");
  if (parts.length > MOST || !parts.every((part) => WINDOW.test(part))) return undefined;
  return parts.map((part) => {
    const [stride = 0, first = 0, hours = 0, ...requests] = part
      .split(".")
      .map((one) => Number.parseInt(one, 36));
    const start = first * HOUR_MS;
    return { stride: STRIDES[stride] ?? "day", start, end: start + hours * HOUR_MS, requests };
  });
}
