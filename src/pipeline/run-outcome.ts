import type { Run } from "../store/activity/runs.ts";

/** `done, 15 failed` rather than `done`. */
export function outcomeOf({ outcome, failed, left }: Pick<Run, "outcome" | "failed" | "left">): string {
  const named = outcome === "partly_failed" ? "done" : outcome;
  return [
    named,
    outcome === "partly_failed" && failed === 0 ? "not all" : "",
    failed > 0 ? `${failed.toLocaleString("en-US")} failed` : "",
    left > 0 ? `${left.toLocaleString("en-US")} left` : "",
  ]
    .filter((part) => part !== "")
    .join(", ");
}
