import { systemClock } from "../../clock.ts";
import { type Backfill, backfillOf, type FailedTask } from "../../store/work/backfills.ts";
import type { Session } from "../session/session.ts";
import { instant, rowsOf, table } from "./output.ts";
import { wrapped } from "./wrap.ts";

const LOOK_EVERY_MS = 500;

/**
 * Shows the progress of a backfill until it ends, Ctrl-C interrupts this process, or the platform refuses the key. In the
 * last two cases the backfill goes on in the service.
 */
export async function followBackfill(
  session: Session,
  backfillId: number,
): Promise<"ended" | "interrupted" | "refused"> {
  const { output, signal } = session;
  const { db } = await session.store();
  return output.progress({ label: `backfill ${backfillId}`, unit: "fetch tasks" }, async (update) => {
    for (;;) {
      const { total, done, failed, state, refused } = await backfillOf(db, backfillId);
      update({ done: done + failed, total, paused: state === "paused" });
      if (state === "done" || state === "cancelled") return "ended";
      if (signal.aborted || refused !== null) {
        if (refused !== null) output.note(`The platform refuses the key: ${refused}`);
        output.note(
          `Backfill ${backfillId} continues in the service${refused === null ? "" : " once the key is accepted"}. \`usage-etl backfill show ${backfillId}\` shows its progress.`,
        );
        return refused === null ? "interrupted" : "refused";
      }
      await systemClock.wait(LOOK_EVERY_MS);
    }
  });
}

export function describeBackfills(backfills: readonly Backfill[]): string {
  if (backfills.length === 0) return "There is no backfill.";
  // `--json` keeps the state's name, beside the count of what failed.
  const stateOf = ({ state, failed }: Backfill) => (failed > 0 ? `${state}, ${failed} failed` : state);
  const shown = backfills.map((b) => ({ ...b, state: stateOf(b), from: instant(b.from), to: instant(b.to) }));
  const hasSources = new Set(backfills.map(({ source }) => source)).size > 1;
  const columns = ["state", "stride", "from", "to", "total", "waiting"] as const;
  const source = hasSources ? (["source"] as const) : [];
  return table(
    ["id", ...source, ...columns.map((name) => (name === "total" ? "fetch tasks" : name))],
    rowsOf(shown, ["backfillId", ...source, ...columns]),
  );
}

export function describeFailed(task: FailedTask): string {
  const { workspaceIds } = task;
  const where = workspaceIds.length === 1 ? workspaceIds[0] : `${workspaceIds.length} workspaces`;
  const when = `${instant(task.from)} to ${instant(task.to)}`;
  return wrapped(
    "failed: ",
    `${task.groupBy} ${task.stride} ${when}, ${where}: ${task.message} [${task.code}]`,
  );
}
