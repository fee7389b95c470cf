import { expect, test } from "vitest";
import { z } from "zod";
import { extractJob } from "../../jobs/extract.ts";
import { pruneJob } from "../../jobs/prune.ts";
import { reconcileRangeJob } from "../../jobs/reconcile-range.ts";
import { sourceSchema } from "../../src/config/settings.ts";
import "../../src/validation.ts";

const EVERY = z.strictObject({
  text: z.string(),
  short: z.string().min(3).max(4),
  number: z.number().min(2).lt(5),
  above: z.number().positive(),
  whole: z.int(),
  flag: z.boolean(),
  list: z.array(z.string()).min(1).max(2),
  choice: z.enum(["a", "b"]),
  either: z.union([z.string(), z.int()]),
  map: z.record(z.string(), z.string()),
  id: z.uuid(),
});

test.each<[string, z.ZodType, unknown, string[]]>([
  [
    "a wrong value of every kind",
    EVERY,
    {
      text: 1,
      short: "a",
      number: 7,
      above: 0,
      whole: 1.5,
      flag: 0,
      list: [],
      choice: "c",
      either: null,
      map: [],
      id: "x",
      more: 1,
    },
    [
      "text must be a text",
      "short must have 3 characters or more",
      "number must be below 5",
      "above must be above 0",
      "whole must be a whole number",
      "flag must be true or false",
      "list must not be empty",
      "choice must be a or b",
      "either has a form that is not known",
      "map must be an object",
      "id is not a valid uuid",
      " must not hold more",
    ],
  ],
  ["a job without data", extractJob.payload, {}, ["taskId is missing", "generation is missing"]],
  [
    "a task no table holds",
    extractJob.payload,
    { taskId: 2 ** 53 - 1, generation: 2 ** 31 },
    ["generation must be 2147483647 or less"],
  ],
  [
    "days beyond all time",
    pruneJob.payload,
    { keepDays: 40_000, keepHours: 1e9 },
    ["keepDays must be 36525 or less", "keepHours must be 876600 or less"],
  ],
  ["the same of a reconciliation", reconcileRangeJob.payload, { days: 1e15 }, ["days must be 36525 or less"]],
  [
    "a source",
    sourceSchema,
    { slug: 1, baseUrl: "https://x.example", apiKey: "", rateLimit: "x" },
    ["slug must be a text", "apiKey must not be empty", "rateLimit is not a number"],
  ],
])("%s is refused in our words", (_, schema, value, said) => {
  const { issues = [] } = schema.safeParse(value).error ?? {};
  expect(issues.map(({ path, message }) => `${path.join(".")} ${message}`)).toEqual(said);
});
