import { DAY_MS } from "../../../../src/core/domain/time/stride.ts";

export type Lines = Readonly<Record<string, readonly string[]>>;

export type Value = string | number | boolean | null | undefined | Date;

export function line(values: readonly Value[]): string {
  return values
    .map((value) => (value instanceof Date ? value.toISOString() : String(value ?? "-")))
    .join(" ");
}

/** Instants in the model are epoch milliseconds. */
export function instant(ms: number | undefined): Date | undefined {
  return ms === undefined ? undefined : new Date(ms);
}

export function dateOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

export function daysUntil(first: number, now: number): number[] {
  return Array.from({ length: Math.floor((now - first) / DAY_MS) + 1 }, (_, i) => first + i * DAY_MS);
}
