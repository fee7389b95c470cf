import { UsageError } from "../../../../errors.ts";
import { sourcesToClose } from "../../../../pipeline/months/close.ts";
import type { ListedSource, SourceWithWorkspaces } from "../../../../store/activity/overview.ts";
import { type Html, html } from "../../html.ts";
import { choice } from "../../parts/form.ts";
import type { Context } from "../../routes.ts";

/** The source that the address names, or the first one. Errors: `source_unknown`, `source_unloaded`. */
export async function chosenSource(
  { db, config }: Pick<Context<unknown, unknown>, "db" | "config">,
  slug: string | undefined,
): Promise<{ source: SourceWithWorkspaces; sources: readonly SourceWithWorkspaces[] }> {
  const sources = await sourcesToClose(
    db,
    config.sources.map((one) => one.slug),
  );
  const source = slug === undefined ? sources[0] : sources.find((one) => one.source === slug);
  if (source !== undefined) return { source, sources };
  throw new UsageError({
    code: "source_unknown",
    message: `There is no loaded source ${slug}.`,
    next: `Choose one of: ${sources.map((one) => one.source).join(", ")}.`,
  });
}

/** Chooses another source; nothing where there is one only. */
export function sourceForm(path: string, sources: readonly ListedSource[], chosen: string): Html | "" {
  if (sources.length < 2) return "";
  const options = sources.map(({ source }) => ({ value: source, text: source }));
  return html`<form class="row" method="get" action="${path}">
    ${choice("Source", "source", options, chosen)} <button>Show</button></form>`;
}
