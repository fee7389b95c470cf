import { dayOf } from "../../../domain/time/days.ts";
import { DAY_MS } from "../../../domain/time/stride.ts";
import type { Interval } from "../../../domain/time/window.ts";
import { amountShown } from "../../../domain/usage/amount.ts";
import type { GroupBy } from "../../../domain/usage/record.ts";
import { dimensionOf } from "../../../domain/usage/record.ts";
import { type Counted, meterOfCounted } from "../../../store/figures/counted.ts";
import type { Per } from "../../../store/figures/records.ts";
import type { Question } from "./question.ts";
import type { Figure, Line } from "./report.ts";

const DIMENSION_WORDS: Readonly<Record<GroupBy, { readonly one: string; readonly many: string }>> = {
  workspace: { one: "workspace", many: "workspaces" },
  project: { one: "project", many: "projects" },
  user: { one: "user", many: "users" },
  api_key: { one: "API key", many: "API keys" },
};

/** What is counted, as the unit of a figure. */
export const COUNTED_WORDS: Readonly<Record<Counted, string>> = {
  traces: "traces",
  longlived: "long-lived traces",
  nodes_executed: "nodes executed",
  agent_runs: "agent runs",
  agent_uptime_seconds: "seconds of agent uptime",
};

/** What the ids stand for. A "project" of deployment usage is a deployment, not one of the projects that have traces. */
export function idWords({ by, measure }: Pick<Question, "by" | "measure">): {
  readonly one: string;
  readonly many: string;
} {
  return measure !== "cost" && dimensionOf(meterOfCounted(measure), by) === "deployment"
    ? { one: "deployment", many: "deployments" }
    : DIMENSION_WORDS[by];
}

/** How a line without an id of its own is called. */
export function lineTitle({ kind, ids }: Line, question: Pick<Question, "by" | "measure">): string {
  const { one, many } = idWords(question);
  if (kind === "none") return "(none)";
  if (kind === "unloaded") return `Not loaded by ${one}`;
  if (kind === "rest") return `The rest: ${ids.toLocaleString("en-US")} ${ids === 1 ? one : many}`;
  return kind === "total" ? "Total" : "";
}

/** A sum in words: what is loaded of it where a part is missing, never zero in its place. */
export function figureShown(figure: Figure): string {
  if (figure.isComplete) return `${amountShown(figure.amount)}${figure.isUnderWay ? " so far" : ""}`;
  return figure.amount === 0n ? "not loaded" : `at least ${amountShown(figure.amount)}`;
}

/** What to think of a sum, in one word of the views. */
export function stateWord({
  isComplete,
  isFinal,
  isUnderWay,
}: Figure): "missing" | "under way" | "provisional" | "final" {
  if (!isComplete) return "missing";
  if (isUnderWay) return "under way";
  return isFinal ? "final" : "provisional";
}

export function percent(value: number | null, { signed = false } = {}): string {
  if (value === null) return "–";
  const shown = Math.abs(value).toLocaleString("en-US", {
    minimumFractionDigits: 1,
    maximumFractionDigits: 1,
  });
  const sign = value < 0 ? "−" : signed && value > 0 ? "+" : "";
  return `${sign}${shown} %`;
}

const MOST_NAMED = 6;

/** Days, or hours, that a list of intervals holds, as people write them: the last one included. */
export function intervalsShown(intervals: readonly Interval[], per: Per): string {
  const named = intervals
    .slice(0, MOST_NAMED)
    .map((one) => (per === "hour" ? hoursShown(one) : daysShown(one)));
  const left = intervals.length - named.length;
  return named.join(", ") + (left > 0 ? ` and ${left} more parts` : "");
}

function daysShown({ start, end }: Interval): string {
  const [first, last] = [dayOf(start), dayOf(end - 1)];
  return first === last ? first : `${first} to ${last}`;
}

function hoursShown({ start, end }: Interval): string {
  const shown = (at: number) => new Date(at).toISOString().slice(0, 16).replace("T", " ");
  if (end - start >= DAY_MS && start % DAY_MS === 0 && end % DAY_MS === 0) return daysShown({ start, end });
  return `${shown(start)} until ${shown(end)}`;
}
