import type { Database } from "../../store/db/database.ts";
import { type Backfill, listBackfills } from "../../store/work/backfills.ts";
import type { Wish } from "./wish.ts";

/** Two backfills may ask for the same time. Each sentence says of an unfinished one what that means. */
export async function overlapNotes(
  db: Database,
  { slug, range, stride }: { slug: string } & Pick<Wish, "range" | "stride">,
): Promise<string[]> {
  const unfinished = await listBackfills(db, { source: slug, states: ["running", "paused"] });
  const isOverlapping = (other: Backfill) =>
    other.stride === stride && Date.parse(other.from) < range.end && Date.parse(other.to) > range.start;
  return unfinished
    .filter(isOverlapping)
    .map(({ backfillId, state }) =>
      state === "running"
        ? `Backfill ${backfillId} overlaps and is running. What it loads from now on is not fetched twice.`
        : `Backfill ${backfillId} overlaps and is paused. This one fetches its tasks too.`,
    );
}
