import { addMonths, monthStart } from "../../../domain/time/days.ts";
import { GROUPINGS } from "../../../domain/usage/record.ts";
import { printableLine } from "../../../printable.ts";
import type { UsageSource, UsageWorkspace } from "../../../store/figures/sources.ts";
import { type Html, html } from "../html.ts";
import { choice, dayField } from "../parts/form.ts";
import { addressOf } from "./links.ts";
import { MEASURED, presetsOf, type Question } from "./question.ts";
import { COUNTED_WORDS, idWords } from "./words.ts";

interface Known {
  readonly sources: readonly UsageSource[];
  readonly workspaces: readonly UsageWorkspace[];
  readonly currencies: readonly string[];
}

/** What is asked, as a form, and the ranges that are asked for most. */
export function questionForm(question: Question, { sources, workspaces, currencies }: Known): Html {
  const { source, by, asked, per, measure, currency, workspace, today } = question;
  const months = Array.from({ length: monthsSince(source.dataStart, today) }, (_, n) =>
    addMonths(monthStart(today), -n).slice(0, 7),
  );
  const same = (value: string) => ({ value, text: value });
  return html`<form class="row" method="get" action="/usage">
      ${
        sources.length > 1
          ? choice(
              "Source",
              "source",
              sources.map(({ slug }) => same(slug)),
              source.slug,
            )
          : html`<input type="hidden" name="source" value="${source.slug}">`
      }
      ${choice(
        "By",
        "by",
        GROUPINGS.map((value) => ({ value, text: idWords({ by: value, measure }).one })),
        by,
      )}
      ${dayField("From", "from", asked.from)}
      ${dayField("To (not included)", "to", asked.to)}
      ${choice("Per", "per", ["hour", "day", "month"].map(same), per)}
      ${choice(
        "Measure",
        "measure",
        MEASURED.map((value) => ({ value, text: value === "cost" ? "cost" : COUNTED_WORDS[value] })),
        measure,
      )}
      ${measure === "cost" && currencies.length > 1 ? choice("Currency", "currency", currencies.map(same), currency) : ""}
      ${
        workspaces.length > 1
          ? choice(
              "Workspace",
              "workspace",
              [
                { value: "", text: "all" },
                ...workspaces.map(({ id, name }) => ({ value: id, text: short(name ?? id) })),
              ],
              workspace?.id ?? "",
            )
          : ""
      }
      <button>Show</button>
    </form>
    <nav class="presets" aria-label="Ranges"><ul>${presetsOf(today).map(({ name, range }) => {
      const isHere = range.from === asked.from && range.to === asked.to;
      const to = addressOf(question, { ...range, per: undefined });
      return html`<li><a href="${to}" ${isHere ? html`aria-current="true"` : ""}>${name}</a></li>`;
    })}</ul></nav>
    <form class="row" method="get" action="/usage">
      ${hidden({ source: source.slug, by, measure, currency: measure === "cost" ? currency : undefined, workspace: workspace?.id })}
      ${choice("Month", "month", months.map(same), asked.from.slice(0, 7))}
      <button>Show the month</button>
    </form>`;
}

function hidden(fields: Readonly<Record<string, string | undefined>>): Html[] {
  return Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [html`<input type="hidden" name="${name}" value="${value}">`],
  );
}

const MOST_MONTHS = 120;

function monthsSince(dataStart: string, today: string): number {
  const months =
    (Number(today.slice(0, 4)) - Number(dataStart.slice(0, 4))) * 12 +
    Number(today.slice(5, 7)) -
    Number(dataStart.slice(5, 7)) +
    1;
  return Math.min(Math.max(months, 1), MOST_MONTHS);
}

/** Within a list, which takes no other element. */
function short(given: string): string {
  const text = printableLine(given);
  return text.length > 60 ? `${text.slice(0, 59)}…` : text;
}
