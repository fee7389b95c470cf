import type { Days } from "../../../domain/time/days.ts";
import type { Question } from "./question.ts";

/** The address of a question, or of one that differs in some points. Undefined leaves a point out. */
export function addressOf(
  question: Question,
  changed: Readonly<Record<string, string | undefined>> = {},
  path = "/usage",
): string {
  const { source, by, asked, per, measure, currency, workspace } = question;
  const all = {
    ...{ source: source.slug, by, from: asked.from, to: asked.to, per, measure },
    ...{ currency: measure === "cost" ? currency : undefined, workspace: workspace?.id },
    ...changed,
  };
  const given = Object.entries(all).filter((pair): pair is [string, string] => pair[1] !== undefined);
  return `${path}?${new URLSearchParams(given)}`;
}

/** The page of coverage for the days of a workspace. */
export function coverageAddress({ source, by }: Question, { from, to }: Days, workspace?: string): string {
  const given = { source: source.slug, stride: "day", from, to, group_by: by };
  return `/coverage?${new URLSearchParams(workspace === undefined ? given : { ...given, workspace })}`;
}
