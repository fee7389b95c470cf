import { z } from "zod";
import type { Config, SourceConfig } from "../../../../config/config.ts";
import { STRIDES, type Stride } from "../../../../domain/time/stride.ts";
import { GROUPINGS, type GroupBy } from "../../../../domain/usage/record.ts";
import { readInstant, type Wish } from "../../../../pipeline/backfill/wish.ts";

const text = z.string().max(200).optional();
/** A field that is given once, several times or not at all. */
const several = z
  .union([z.string().max(200), z.array(z.string().max(200)).max(1000)])
  .optional()
  .transform((given) => [given ?? []].flat().filter((one) => one !== ""));

/** What the form of a new backfill sends, as a query and as a body. Nothing of it is checked yet: the form keeps it. */
export const ASKED = z.object({
  ...{ source: text, from: text, to: text, stride: text, reprocess: text },
  ...{ group_by: several, workspace: several },
});
export type Asked = z.output<typeof ASKED>;

/** What was asked for, once it makes sense. */
export interface CheckedWish {
  readonly source: SourceConfig;
  readonly wish: Wish;
  /** Platform ids; undefined: all. */
  readonly workspaceIds: readonly string[] | undefined;
}

/** `problems`: sentences. Both missing: nothing was asked for yet. */
export function checkAsked(
  { sources }: Config,
  asked: Asked,
): { readonly checked?: CheckedWish; readonly problems: readonly string[] } {
  const source = sources.find(({ slug }) => slug === (asked.source ?? sources[0]?.slug));
  const problems: string[] = [];
  if (source === undefined) problems.push(`Source ${asked.source ?? ""} is not configured here.`);
  const { stride = "day", reprocess = "missing" } = asked;
  if (!isStride(stride)) problems.push(`Stride ${stride} is none of ${STRIDES.join(", ")}.`);
  if (reprocess !== "missing" && reprocess !== "all")
    problems.push(`Choose missing or all, not ${reprocess}.`);
  const unknown = asked.group_by.find((one) => !isDimension(one));
  if (unknown !== undefined) problems.push(`Dimension ${unknown} is none of ${GROUPINGS.join(", ")}.`);
  if ((asked.from ?? "") === "" && (asked.to ?? "") === "") return { problems };
  const start = instantOf("From", asked.from, problems);
  const end = instantOf("To", asked.to, problems);
  if (start !== undefined && end !== undefined && start >= end)
    problems.push("From is not before To. To is not included: one day is 2026-03-01 to 2026-03-02.");
  if (problems.length > 0 || source === undefined || start === undefined || end === undefined)
    return { problems };
  const chosen = GROUPINGS.filter((one) => asked.group_by.includes(one));
  const wish: Wish = {
    meter: "traces",
    range: { start, end },
    stride: stride as Stride,
    groupings: chosen.length === 0 ? GROUPINGS : chosen,
    reprocess: reprocess as Wish["reprocess"],
  };
  const ids = [...new Set(asked.workspace.map((id) => id.toLowerCase()))].sort();
  return { checked: { source, wish, workspaceIds: ids.length === 0 ? undefined : ids }, problems };
}

function instantOf(label: string, given: string | undefined, problems: string[]): number | undefined {
  if (given === undefined || given === "") {
    problems.push(`${label} is missing. Give both days. To is not included.`);
    return undefined;
  }
  const read = readInstant(given);
  if (typeof read === "number") return read;
  problems.push(`${label}: ${given} cannot be used. ${read}`);
  return undefined;
}

function isStride(given: string): given is Stride {
  return STRIDES.some((stride) => stride === given);
}

function isDimension(given: string): given is GroupBy {
  return GROUPINGS.some((one) => one === given);
}

/** The command that does the same. A command names one dimension or all, and means every configured source. */
export function commandsOf({ wish, workspaceIds }: CheckedWish, { from, to }: Asked): string[] {
  const { stride, reprocess, groupings } = wish;
  const flags = [
    ...(stride === "day" ? [] : [` --stride ${stride}`]),
    ...(workspaceIds === undefined ? [] : [` --workspace ${workspaceIds.join(" ")}`]),
    ...(reprocess === "missing" ? [] : [" --reprocess all"]),
  ];
  const dimensions =
    groupings.length === GROUPINGS.length ? [""] : groupings.map((one) => ` --group-by ${one}`);
  return dimensions.map((dimension) => {
    const allFlags = [...flags, dimension].join("");
    return `usage-etl backfill --from ${from} --to ${to}${allFlags}`;
  });
}
