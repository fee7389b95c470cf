import {
  type Finality,
  isTierWatched,
  judgeFinality,
  LOOK_BACK_DAYS,
  tierSettleAfterMs,
} from "../../core/domain/proof/lateness.ts";
import { DAY_MS, HOUR_MS } from "../../core/domain/time/stride.ts";
import { METER_NAME, type Meter } from "../../core/domain/usage/meter.ts";
import type { Database } from "../../core/store/db/database.ts";
import { latenessOf } from "../../core/store/proof/lateness.ts";

export async function finalityOf(
  db: Database,
  { sourceId, settleAfterMs }: { sourceId: number; settleAfterMs: number },
): Promise<Finality> {
  return judgeFinality(await latenessOf(db, { sourceId }), settleAfterMs);
}

export function describeFinality(finality: Finality, settleAfterMs: number): string[] {
  const { changes, finalChanges, nearlyAllWithinHours, adviseDays, verdict } = finality;
  const setting = `USAGE_SETTLE_AFTER is ${settleAfterMs / DAY_MS} days`;
  const seen = `99.9 % of late traces arrived within ${nearlyAllWithinHours} h`;
  const advice = {
    unknown: `${setting}. ${changes} late changes in ${LOOK_BACK_DAYS} days are too few to check it.`,
    enough: `${seen}. ${setting}, which is enough.`,
    raise: `${seen}. ${setting}: raise it to P${adviseDays}D.`,
    lower: `${seen}. ${setting}: P${adviseDays}D is enough.`,
  };
  if (finalChanges === 0) return [advice[verdict]];
  return [
    advice[verdict],
    `${finalChanges} final counts of traces by workspace and day changed. reporting_detail.usage_restatement lists them.`,
  ];
}

export async function describeTierFinality(
  db: Database,
  { sourceId, meter, settleAfterMs }: { sourceId: number; meter: Meter; settleAfterMs: number },
): Promise<string> {
  const seen = await latenessOf(db, { sourceId, meter });
  const afterMs = tierSettleAfterMs(seen, settleAfterMs);
  const isLast = isTierWatched(seen) && seen.every(({ ageHours }) => ageHours * HOUR_MS <= afterMs);
  const why = isLast
    ? `No change of the last ${LOOK_BACK_DAYS} days came later.`
    : "A trace cannot change its tier later. The late changes so far do not prove that a shorter wait is enough.";
  return `${METER_NAME[meter]}: a day is final ${afterMs / DAY_MS} days after its end. ${why}`;
}
