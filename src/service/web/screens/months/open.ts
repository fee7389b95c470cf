import { type AskedClose, DISAGREEMENTS } from "../../../../domain/months/check-list.ts";
import type { MonthLook } from "../../../../pipeline/months/look.ts";
import type { ListedSource } from "../../../../store/activity/overview.ts";
import { type Html, html } from "../../html.ts";
import { notice } from "../../parts/notice.ts";
import { count, name, twin } from "../../parts/text.ts";
import { checkList } from "./check-list.ts";
import { address } from "./links.ts";

interface OpenMonth {
  readonly look: MonthLook;
  readonly source: ListedSource;
  readonly asked: AskedClose;
  readonly accepts: boolean;
  /** Of what is closed with accepted disagreements. */
  readonly digest: string | undefined;
  /** Whether the person may close it. */
  readonly mayClose: boolean;
  /** Sources that the command closes with this one. */
  readonly otherSources: number;
}

/** A month that is over and not closed: the check list, or the way to close it. */
export function openPage(given: OpenMonth): Html {
  const { look, source, asked, accepts, mayClose } = given;
  const { month, open, accepted } = look;
  const { without } = asked;
  const fields = { source: source.source, without, accept: accepts ? "yes" : undefined };
  const state =
    open.length > 0
      ? html`${notice("warn", html`<p>${month.name} is open: ${count(open.length)} days x dimensions x workspaces keep it so.</p>`)}
        ${checkList(open, asked, source.source)}`
      : html`${notice("good", html`<p>${month.name} is open, and nothing keeps it open: every day is loaded, final and reconciled${accepted === 0 ? "" : html`, but for ${count(accepted)} that are accepted`}.</p>`)}
        ${mayClose ? html`<p><a class="button" href="${address(`/months/${month.name}/close`, fields)}">Close ${month.name} …</a></p>` : html`<p>An operator can close it.</p>`}
        ${twin(commandOf(given))}
        ${given.otherSources === 0 ? "" : html`<p class="quiet">The command closes the month for the other configured sources too.</p>`}`;
  return html`${state}
    ${without.length === 0 && !accepts ? "" : html`<p>${conditions(given)} <a href="${address(`/months/${month.name}`, { source: source.source })}">Look at all of it</a></p>`}
    ${options(given)}`;
}

function conditions({ asked: { without }, accepts }: OpenMonth): Html {
  const left = without.length === 0 ? "" : html`Without ${without.map((id) => html`${name(id)} `)}.`;
  return html`${left} ${accepts ? "Days on which the platform contradicts itself are accepted." : ""}`;
}

function commandOf({ look: { month }, asked: { without }, accepts, digest }: OpenMonth): string {
  const acceptFlags = accepts ? " --accept-disagreements" : "";
  const withoutFlags = without.map((id) => ` --without ${id}`).join("");
  const expectFlags = digest === undefined ? "" : ` --expect ${digest}`;
  return `usage-etl close ${month.name}${acceptFlags}${withoutFlags}${expectFlags}`;
}

/** Leaving out workspaces and accepting disagreements, with what that means. Looking at it changes nothing. */
function options({ look, source, asked, accepts }: OpenMonth): Html {
  const { month, required, open } = look;
  const { without } = asked;
  const openIn = Map.groupBy(open, ({ workspaceId }) => workspaceId);
  // First those that keep the month open: they are why somebody looks here.
  const ids = [...without, ...required.map(({ workspaceId }) => workspaceId)].sort(
    (a, b) => (openIn.get(b)?.length ?? 0) - (openIn.get(a)?.length ?? 0),
  );
  const isDisputed = accepts || open.some(({ reason }) => DISAGREEMENTS.includes(reason));
  return html`<details class="close-options" ${without.length > 0 || accepts ? "open" : ""}><summary>Leave out workspaces, or accept disagreements</summary>
    <form method="get" action="/months/${month.name}">
      <input type="hidden" name="source" value="${source.source}">
      ${
        isDisputed
          ? html`<p><label><input type="checkbox" name="accept" value="yes" ${accepts ? "checked" : ""}> Accept days on which the platform contradicts itself</label>
            <br><span class="quiet">What is stored is closed as it is. How many days these are is kept with the close.</span></p>`
          : ""
      }
      <fieldset><legend>Leave out</legend>
        <p class="quiet">Totals of a workspace that is left out are not in the close. What is loaded of it later is no adjustment.</p>
        ${ids.map(
          (id) =>
            html`<p><label><input type="checkbox" name="without" value="${id}" ${without.includes(id) ? "checked" : ""}>
              <span>${name(id)}${openIn.has(id) ? `, ${openIn.get(id)?.length.toLocaleString("en-US")} open` : ""}</span></label></p>`,
        )}
      </fieldset>
      <button>Look</button>
    </form></details>`;
}
