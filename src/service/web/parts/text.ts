import { printableLine } from "../../../printable.ts";
import { PROGRAM } from "../../../typed.ts";
import { type Html, html } from "../html.ts";

const LONGEST = 60;

/** A name from the platform: one line, isolated from the text around it, shortened with the whole as its title. */
export function name(text: string): Html {
  const whole = printableLine(text);
  if (whole.trim() === "") return html`<bdi class="blank">(blank)</bdi>`;
  const characters = [...whole];
  if (characters.length <= LONGEST) return html`<bdi>${whole}</bdi>`;
  const short = `${characters.slice(0, LONGEST - 1).join("")}…`;
  return html`<bdi title="${whole}">${short}</bdi>`;
}

/** A whole number with thousands separators; a dash with its meaning where there is none. */
export function count(value: number | null, missing = "not known"): Html {
  return value === null
    ? html`<span class="none" title="${missing}">–<span class="visually-hidden"> ${missing}</span></span>`
    : html`<span class="number">${value.toLocaleString("en-US")}</span>`;
}

/** An instant (epoch milliseconds or ISO text) to the second. The layout says once that times are UTC. */
export function instant(at: number | string): Html {
  const iso = new Date(at).toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace("T", " ")}</time>`;
}

/** What does the same as the page or button beside it. `command` begins with `usage-etl`. */
export function twin(command: string): Html {
  const typed = command.replace(/^usage-etl\b/, () => PROGRAM);
  return html`<p class="twin"><span class="visually-hidden">On the command line: </span><code>${typed}</code></p>`;
}

/** A sentence with `` `usage-etl status` `` in it, as errors and findings write their next steps. */
export function prose(text: string): Html {
  const parts = printableLine(text).split(/`([^`]*)`/);
  return html`${parts.map((part, n) =>
    n % 2 === 0 ? part : html`<code>${part.replace(/^usage-etl\b/, () => PROGRAM)}</code>`,
  )}`;
}
