import { STRIDES } from "../../../../domain/time/stride.ts";
import { GROUPINGS } from "../../../../domain/usage/record.ts";
import type { NamedWorkspace } from "../../../../store/activity/readers.ts";
import { type Html, html } from "../../html.ts";
import { choice, dayField } from "../../parts/form.ts";
import { name } from "../../parts/text.ts";
import type { Asked } from "./asked.ts";

/** The form of a new backfill, with what was asked for. It asks for the preview: nothing starts by it. */
export function askForm(
  asked: Asked,
  { slugs, workspaces }: { slugs: readonly string[]; workspaces: readonly NamedWorkspace[] },
): Html {
  const options = (values: readonly string[]) => values.map((value) => ({ value, text: value }));
  return html`<form method="get" action="/backfills/new" class="ask">
    <div class="row">
      ${slugs.length > 1 ? choice("Source", "source", options(slugs), asked.source ?? slugs[0]) : html`<input type="hidden" name="source" value="${slugs[0] ?? ""}">`}
      ${instantField("From (UTC)", "from", asked.from)}
      ${instantField("To, not included", "to", asked.to)}
      ${choice("Stride", "stride", options(STRIDES), asked.stride ?? "day")}
    </div>
    <fieldset><legend>Dimensions (none chosen: all)</legend>
      ${GROUPINGS.map((one) => tick("group_by", one, html`${one}`, asked.group_by.includes(one)))}
    </fieldset>
    <fieldset><legend>What is fetched</legend>
      ${radio("missing", "Only what is missing: final figures are skipped", asked.reprocess !== "all")}
      ${radio("all", "Everything again: final figures that changed become restatements", asked.reprocess === "all")}
    </fieldset>
    <details ${asked.workspace.length > 0 ? "open" : ""}><summary>Only some workspaces</summary>
      <fieldset class="many"><legend>Workspaces (none chosen: all)</legend>
        ${workspaces.map(({ id, name: text }) =>
          tick("workspace", id, html`${name(text ?? id)} <code>${id}</code>`, asked.workspace.includes(id)),
        )}
        ${workspaces.length === 0 ? html`<p class="quiet">No workspace is known yet.</p>` : ""}
      </fieldset>
    </details>
    <p><button>Preview</button></p>
  </form>`;
}

/** A day, and an instant where one was given: a browser's field for days would drop its hours. */
function instantField(label: string, field: string, value: string | undefined): Html {
  const isDay = value === undefined || value === "" || /^\d{4}-\d{2}-\d{2}$/.test(value);
  if (isDay) return dayField(label, field, value);
  return html`<label>${label}
    <input type="text" name="${field}" value="${value}">
  </label>`;
}

function tick(field: string, value: string, label: Html, isChosen: boolean): Html {
  return html`<label><input type="checkbox" name="${field}" value="${value}" ${isChosen ? "checked" : ""}> <span>${label}</span></label>`;
}

function radio(value: string, label: string, isChosen: boolean): Html {
  return html`<label><input type="radio" name="reprocess" value="${value}" ${isChosen ? "checked" : ""}> <span>${label}</span></label>`;
}
