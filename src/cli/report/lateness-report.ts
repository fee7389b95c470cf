import { type Finality, judgeFinality } from "../../domain/proof/lateness.ts";
import { DAY_MS } from "../../domain/time/stride.ts";
import type { Database } from "../../store/db/database.ts";
import { latenessOf } from "../../store/proof/lateness.ts";

const LOOK_BACK_DAYS = 90;

export async function finalityOf(
  db: Database,
  { sourceId, settleAfterMs }: { sourceId: number; settleAfterMs: number },
): Promise<Finality> {
  return judgeFinality(await latenessOf(db, { sourceId, days: LOOK_BACK_DAYS }), settleAfterMs);
}

/** One or two lines: how late counts change, and whether `USAGE_SETTLE_AFTER` is long enough. */
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
  const lines = [advice[verdict]];
  if (finalChanges > 0) {
    lines.push(
      `WARNING: ${finalChanges} final counts by workspace and day changed. reporting.usage_restatement lists them.`,
    );
  }
  return lines;
}
