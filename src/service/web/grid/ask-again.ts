import { z } from "zod";
import { UsageError } from "../../../errors.ts";
import { digestOf, planBackfill, previewedSource } from "../../../pipeline/backfill/plan-backfill.ts";
import { startShown } from "../../../pipeline/backfill/start-backfill.ts";
import { workspacesOf } from "../../../pipeline/backfill/wish.ts";
import { type Html, html } from "../html.ts";
import { postForm } from "../parts/form.ts";
import { twin } from "../parts/text.ts";
import type { Context, Web } from "../routes.ts";
import { ASKED, type Asked, checkAsked, commandsOf } from "../screens/backfill/asked.ts";
import { type Target, written } from "./query.ts";

const BODY = ASKED.extend({ shown_at: z.coerce.number().int().positive().max(8.64e15) });

/** Fetches all of a part of the coverage again, as a backfill. Sent twice from one page, it is started once. */
export function addAskAgain(web: Web): void {
  web.action("/cell", { body: BODY }, async ({ body, config, store, actor, now, enqueue }) => {
    const { checked, problems } = checkAsked(config, { ...body, reprocess: "all" });
    if (checked === undefined) {
      throw new UsageError({
        code: "form_invalid",
        message: problems.join(" ") || "The form names no range.",
        next: "Go back to the cell and reload it.",
      });
    }
    const { wish, workspaceIds } = checked;
    const known = await previewedSource(checked.source, store.db);
    const source = { ...known, workspaceIds: workspacesOf(workspaceIds, known.workspaceIds) };
    const { tasks } = await planBackfill(source, wish, now);
    const shown = { digest: digestOf(source, wish, tasks), shownAt: body.shown_at, windows: undefined };
    const started = await startShown(store, source, wish, { shown, by: actor, now });
    // Something was loaded there in this moment: the preview shows what is left to ask.
    if (started.outcome === "changed") {
      const { source: slug, stride, from, to, group_by, workspace } = body;
      const fields = {
        source: slug,
        stride,
        from,
        to,
        group_by: group_by[0],
        workspace: workspace[0],
        reprocess: "all",
      };
      const given = Object.entries(fields).filter((one): one is [string, string] => one[1] !== undefined);
      return { redirect: `/backfills/new?${new URLSearchParams(given)}` };
    }
    await enqueue(source.slug);
    return { redirect: `/backfills/${started.backfillId}` };
  });
}

/** The button, with the commands that do the same. */
export function askAgainForm(
  { config, who, csrf, now }: Pick<Context<unknown, unknown>, "config" | "who" | "csrf" | "now">,
  { target, refusal }: { target: Target; refusal: string | undefined },
): Html {
  const { source, stride = "day", range, groupBy, workspaceId } = target;
  if (range === undefined || workspaceId === undefined) return html``;
  const asked: Asked = {
    ...{ source, stride, from: written(range.start), to: written(range.end), reprocess: "all" },
    ...{ group_by: groupBy === undefined ? [] : [groupBy], workspace: [workspaceId] },
  };
  const { checked } = checkAsked(config, asked);
  if (checked === undefined) {
    return html`<p class="quiet">The source is not configured here, so nothing of it can be asked for.</p>`;
  }
  if (refusal !== undefined) return html`<p class="quiet">Nothing of it can be asked for: ${refusal}.</p>`;
  const commands = commandsOf(checked, asked).map((command) => twin(command));
  if (who.role !== "operator") return html`<p class="quiet">Operators can ask for it again.</p>${commands}`;
  const fields = {
    source,
    stride,
    from: asked.from,
    to: asked.to,
    group_by: groupBy ?? "",
    workspace: workspaceId,
  };
  return html`<p>Fetches all of it again, also what is final. A change of a final count is kept as a restatement.</p>
    ${postForm("/cell", {
      csrf: csrf(),
      label: "Ask again",
      body: html`${Object.entries({ ...fields, shown_at: String(Math.round(now)) }).map(
        ([field, value]) => html`<input type="hidden" name="${field}" value="${value ?? ""}">`,
      )}`,
    })}${commands}`;
}
