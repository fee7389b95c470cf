import { z } from "zod";

/** A fault of billing: what becomes of one trace. */
const meterFaultSchema = z.discriminatedUnion("kind", [
  /** Never billed. */
  z.strictObject({ kind: z.literal("drop") }),
  /** Billed twice: the second time so many seconds later. */
  z.strictObject({ kind: z.literal("double"), after_seconds: z.number().min(0).default(0) }),
  /** Billed so many seconds later, in the hour in which it was sent. */
  z.strictObject({ kind: z.literal("late"), seconds: z.number().min(0) }),
  /** Billed to another one of the same workspace. */
  z.strictObject({ kind: z.literal("project") }),
  z.strictObject({ kind: z.literal("user") }),
  z.strictObject({ kind: z.literal("key") }),
]);
export type MeterFault = z.output<typeof meterFaultSchema>;

/** Hits the next `times` traces after the first `skip`. */
export const meterStepSchema = z.strictObject({
  fault: meterFaultSchema,
  times: z.int().min(1).default(1),
  skip: z.int().min(0).default(0),
});

export const METER_NAMED = {
  "meter-drop": { kind: "drop" },
  "meter-double": { kind: "double", after_seconds: 0 },
  "meter-late": { kind: "late", seconds: 30 },
  "meter-other-project": { kind: "project" },
  "meter-other-user": { kind: "user" },
  "meter-other-key": { kind: "key" },
} as const satisfies Record<string, MeterFault>;
