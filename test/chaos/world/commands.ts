import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import type { Dice } from "../../../src/features/standin/engine/random.ts";
import { start } from "../../support/cli.ts";
import { now } from "../../support/clock.ts";
import type { Event } from "./history.ts";
import type { World } from "./world.ts";

const FINAL_DAYS_AGO = 4;
const PATIENCE_MS = 120_000;

export async function runCommand(world: World, rolls: Dice): Promise<Event> {
  const days = Math.round((world.range.end - world.range.start) / DAY_MS) - FINAL_DAYS_AGO;
  const first = rolls.below(days - 1);
  const from = day(world, first);
  const to = day(world, first + 1 + rolls.below(days - first - 1));
  const stride = rolls.pick(["day", "hour"]);
  const args = rolls.pick([
    ["backfill", "--from", from, "--to", to, "--stride", stride, "--reprocess", "all"],
    ["backfill", "--from", from, "--to", to, "--stride", stride],
    ["coverage", "--from", from, "--to", to, "--fail-on-gaps"],
    ["reconcile", "--from", from, "--to", to, "--stride", stride],
    ["status"],
  ]);
  const { process, ended } = start([...args, "--json"], world.environment);
  // A command may wait for a server or for a backfill as long as the fault lasts.
  const patience = setTimeout(() => process.kill("SIGKILL"), PATIENCE_MS);
  const { code } = await ended;
  clearTimeout(patience);
  const wrong = code === 0 ? await contradiction(world, args, { from, to }).catch(() => null) : null;
  return { at: now(), kind: "command", args: args.join(" "), code, wrong };
}

function day({ range }: World, index: number): string {
  return new Date(range.start + index * DAY_MS).toISOString().slice(0, 10);
}

async function contradiction(
  world: World,
  [name]: readonly string[],
  { from, to }: { from: string; to: string },
): Promise<string | null> {
  if (name !== "backfill" && name !== "coverage") return null;
  const rows = await world.sql<{ status: string; days: number }>(
    `SELECT status, count(*)::integer AS days FROM reporting_detail.usage_coverage_daily
     WHERE usage_date >= $1::date AND usage_date < $2::date AND status NOT IN ('ok', 'empty', 'provisional', 'failed') GROUP BY 1`,
    [from, to],
  );
  return rows.length === 0
    ? null
    : `ended with 0, and of its range ${rows.map((row) => `${row.days} are ${row.status}`)}`;
}
