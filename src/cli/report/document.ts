import { printable } from "../../printable.ts";

/** A value as one JSON document on one line. */
export function toDocument(value: unknown): string {
  return printable(JSON.stringify(value, asEverywhere));
}

/** Keys that hold an instant: epoch milliseconds in the code, or a text in a shorter form. */
const INSTANTS = new Set(["start", "end", "from", "to", "bucketStart"]);
const DAY_OR_INSTANT = /^\d{4}-\d{2}-\d{2}(T\d{2}:\d{2}(:\d{2}(\.\d+)?)?Z)?$/;

/** Instants look alike whichever command prints them. */
function asEverywhere(this: unknown, key: string, value: unknown): unknown {
  // A Date is a text already here.
  const isDate = (this as Record<string, unknown>)[key] instanceof Date;
  if (isDate || (INSTANTS.has(key) && isInstant(value))) return isoInstant(value as string | number);
  return value;
}

function isInstant(value: unknown): boolean {
  return typeof value === "number" || (typeof value === "string" && DAY_OR_INSTANT.test(value));
}

/** Such as `2026-03-01T05:00:00Z`. */
function isoInstant(value: string | number): string {
  return new Date(value).toISOString().replace(/\.\d{3}Z$/, "Z");
}
