import fc from "fast-check";
import { expect, test } from "vitest";
import type { ResourceTag } from "../../../src/core/domain/usage/resource-tag.ts";
import { keepWorkspaceTags } from "../../../src/features/costs/resource-tags.store.ts";
import { seed, times } from "../../support/drawn.ts";
import { setupSource } from "./setup.ts";

const SEED = seed();
const WORKSPACE = "00000000-0000-4000-8000-000000000001";

interface Night {
  readonly tags: readonly ResourceTag[];
  readonly isNextDay: boolean;
  readonly isWhole: boolean;
}

const tag: fc.Arbitrary<ResourceTag> = fc.record({
  dimension: fc.constantFrom("project", "deployment"),
  resourceId: fc.constantFrom("p1", "p2", "it's"),
  key: fc.constantFrom("Application", "Environment"),
  value: fc.constantFrom("a", "b", "c, d", "é"),
});
const history: fc.Arbitrary<Night[]> = fc.array(
  fc.record({
    tags: fc.array(tag, { maxLength: 6 }),
    isNextDay: fc.boolean(),
    isWhole: fc.constantFrom(true, true, false),
  }),
  { minLength: 1, maxLength: 7 },
);

type Known = Map<string, string>;

function expected(nights: readonly Night[]): Known[] {
  const days: Known[] = [];
  for (const { tags, isNextDay, isWhole } of nights) {
    const before = days.at(-1) ?? new Map<string, string>();
    const read: Known = new Map();
    for (const { dimension, resourceId, key } of tags) {
      const same = tags.filter(
        (one) => one.dimension === dimension && one.resourceId === resourceId && one.key === key,
      );
      const values = [...new Set(same.map((one) => one.value))].sort();
      read.set(`${dimension} ${resourceId} ${key}`, values.join(", "));
    }
    const known: Known = isWhole ? read : new Map([...before, ...read]);
    if (days.length === 0 || isNextDay) days.push(known);
    else days[days.length - 1] = known;
  }
  return days;
}

test(`each day has the tags of its last reading, and all time before the first has those of the first day (seed ${SEED})`, async () => {
  const { store, reader, sourceId } = await setupSource({
    workspaceIds: [WORKSPACE],
    dataStart: Date.parse("2026-01-05T00:00:00Z"),
  });
  await fc.assert(
    fc.asyncProperty(history, async (nights) => {
      await reader.query("DELETE FROM usage.resource_tag");
      await reader.query("UPDATE usage.workspace SET tags_since = NULL");
      let ago = 0;
      for (const [nth, { tags, isNextDay, isWhole }] of nights.entries()) {
        if (nth > 0 && isNextDay) {
          // A day passes; in two steps, since a row's new day may be another one's old day.
          for (const days of [40_000, -40_001]) {
            await reader.query(
              `UPDATE usage.resource_tag
               SET valid_from = valid_from + CASE WHEN valid_from = '1900-01-01' THEN 0 ELSE ${days} END, valid_to = valid_to + ${days}`,
            );
          }
          await reader.query("UPDATE usage.workspace SET tags_since = tags_since - 1");
          ago++;
        }
        await keepWorkspaceTags(store, {
          sourceId,
          workspaceId: WORKSPACE,
          tags,
          refused: isWhole ? [] : ["0.tag_key is nothing"],
        });
      }
      const days = expected(nights.map((night, nth) => (nth === 0 ? { ...night, isNextDay: true } : night)));
      expect(days.length).toBe(ago + 1);
      for (const [nth, known] of [days[0] as Known, ...days].entries()) {
        const day =
          nth === 0 ? "date '2001-01-01'" : `(now() AT TIME ZONE 'UTC')::date - ${days.length - nth}`;
        const { rows } = await reader.query<{ line: string; value: string }>(
          ["project", "deployment"]
            .map(
              (dimension) =>
                `SELECT concat_ws(' ', '${dimension}', dimension_id, tag_key) AS line, tag_value AS value
                 FROM reporting_detail.dim_tag WHERE group_by = '${dimension}' AND valid_from <= ${day} AND valid_to > ${day}`,
            )
            .join(" UNION ALL "),
        );
        const found = rows.map(({ line, value }) => `${line}: ${value}`).sort();
        expect(found, `day ${nth} of ${days.length}`).toEqual(
          [...known].map(([line, value]) => `${line}: ${value}`).sort(),
        );
      }
      const { rows: current } = await reader.query(
        "SELECT count(*)::integer AS n FROM usage.resource_tag WHERE valid_to IS NULL",
      );
      expect(current).toEqual([{ n: days.at(-1)?.size }]);
    }),
    { seed: SEED, numRuns: times(60), endOnFailure: true },
  );
});
