import fc from "fast-check";
import { expect, test } from "vitest";
import { DAY_MS, HOUR_MS } from "../../../../../src/core/domain/time/stride.ts";
import { MEASURES } from "../../../../../src/core/domain/usage/meter.ts";
import type { UsageRecord } from "../../../../../src/core/domain/usage/record.ts";
import { KeyNumbering, type ResponseKey } from "../../../../../src/core/domain/usage/response-keys.ts";

const DAYS = 12;
const workspaceIds = ["w0", "w1"];

const record = fc.record({
  day: fc.nat(DAYS - 1),
  workspaceId: fc.constantFrom(...workspaceIds),
  dimensionId: fc.nat(400).map((n) => (n === 0 ? "" : `user ${n}`)),
  dimensionName: fc.oneof(
    fc.constant(null),
    fc.constantFrom("Ann", "Anna", "Bo"),
    fc.nat(9).map((n) => `a long name, longer than what is copied at once ${"漢é".repeat(1000)}${n}`),
  ),
  measure: fc.constantFrom(undefined, ...MEASURES),
});

function modelOf(records: readonly UsageRecord[]) {
  const keys = new Map<string, { -readonly [Name in keyof ResponseKey]: ResponseKey[Name] }>();
  let isAscending = true;
  const numbers = records.map(
    ({ bucketStart, workspaceId, dimensionId, dimensionName, measure = "traces" }) => {
      const hour = (bucketStart as number) / HOUR_MS;
      const text = JSON.stringify([workspaceId, measure, dimensionId]);
      const known = keys.get(text);
      const key = known ?? {
        measure,
        workspace: workspaceIds.indexOf(workspaceId as string),
        dimensionId,
        firstHour: hour,
        lastHour: hour,
        names: [],
      };
      if (known === undefined) keys.set(text, key);
      else if (hour <= key.lastHour) isAscending = false;
      key.firstHour = Math.min(key.firstHour, hour);
      key.lastHour = Math.max(key.lastHour, hour);
      const span = key.names.find(({ name }) => name === dimensionName);
      if (dimensionName !== null) {
        const widened = {
          name: dimensionName,
          firstHour: Math.min(span?.firstHour ?? hour, hour),
          lastHour: Math.max(span?.lastHour ?? hour, hour),
        };
        key.names =
          span === undefined
            ? [...key.names, widened]
            : key.names.map((one) => (one === span ? widened : one));
      }
      return [...keys.keys()].indexOf(text);
    },
  );
  return { numbers, keys: [...keys.values()], isAscending };
}

test("keys are those of a model that adds all records up", () => {
  fc.assert(
    fc.property(fc.array(record, { maxLength: 900, size: "max" }), fc.boolean(), (drawn, isOrdered) => {
      const order = isOrdered ? drawn.toSorted((a, b) => a.day - b.day) : drawn;
      const records: UsageRecord[] = order.map(({ day, measure, ...more }) => ({
        bucketStart: day * DAY_MS,
        traces: 1,
        ...more,
        ...(measure === undefined ? {} : { measure }),
      }));
      const window = { start: 0, end: DAYS * DAY_MS, stride: "day" } as const;
      const numbering = new KeyNumbering({ window, groupBy: "user", workspaceIds });
      const numbers = records.map((one) => numbering.numberOf(one));
      const { keys } = numbering;
      const model = modelOf(records);
      expect(numbers).toEqual(model.numbers);
      expect(keys).toEqual(model.keys);
      expect(numbering.isAscending).toBe(model.isAscending);
      expect([numbering.mostNames, numbering.moreNames]).toEqual([
        Math.max(0, ...model.keys.map(({ names }) => names.length)),
        model.keys.reduce((sum, { names }) => sum + Math.max(0, names.length - 1), 0),
      ]);
    }),
    { seed: 20_260_105, numRuns: 40 },
  );
});
