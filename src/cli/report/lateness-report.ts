import { type Finality, judgeFinality } from "../../domain/finality.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Database } from "../../store/db/database.ts";
import { latenessOf } from "../../store/report/lateness.ts";

/** Days that the advice looks back over. */
const LOOK_BACK_DAYS = 90;

export async function finalityOf(
  db: Database,
  { sourceId, settleAfterMs }: { sourceId: number; settleAfterMs: number },
): Promise<Finality> {
  return judgeFinality(await latenessOf(db, { sourceId, days: LOOK_BACK_DAYS }), settleAfterMs);
}

/** One or two lines: how late counts changed, and whether `USAGE_SETTLE_AFTER` waits long enough for that. */
export function describeFinality(finality: Finality, settleAfterMs: number): string[] {
  const { changes, settledChanges, nearlyAllWithinHours, adviseDays, verdict } = finality;
  const setting = `USAGE_SETTLE_AFTER is ${settleAfterMs / DAY_MS} days`;
  const advice = {
    unknown: `${changes} late changes in ${LOOK_BACK_DAYS} days, too few to judge by (${setting})`,
    enough: `99.9 % of late traces came within ${nearlyAllWithinHours} h; ${setting}: enough`,
    raise: `99.9 % of late traces came within ${nearlyAllWithinHours} h; ${setting}: raise it to P${adviseDays}D`,
    lower: `99.9 % of late traces came within ${nearlyAllWithinHours} h; ${setting}: P${adviseDays}D would do`,
  };
  const lines = [advice[verdict]];
  if (settledChanges > 0) {
    lines.push(
      `WARNING: ${settledChanges} counts by workspace and day changed after they were settled: reporting.usage_restatement has them`,
    );
  }
  return lines;
}
