import type { Backfill } from "../../../../store/work/backfills.ts";
import { type Html, html } from "../../html.ts";
import { count } from "../../parts/text.ts";

const STATES = {
  running: { glyph: "▶", word: "running" },
  paused: { glyph: "‖", word: "paused" },
  cancelled: { glyph: "⊘", word: "cancelled" },
  done: { glyph: "✓", word: "done" },
} as const;

/** The state of a backfill as sign, word and colour. One that is done says whether tasks failed. */
export function stateOf({ state, failed, refused }: Backfill): Html {
  const { glyph, word } = STATES[state];
  const isHeld = state === "running" && refused !== null;
  const text = isHeld
    ? "held: the key is refused"
    : failed > 0
      ? `${word}, ${failed.toLocaleString("en-US")} failed`
      : word;
  const kind = isHeld || failed > 0 ? "troubled" : state;
  return html`<span class="task-state ${kind}"><span aria-hidden="true">${isHeld || failed > 0 ? "!" : glyph}</span> ${text}</span>`;
}

/** Ended fetch tasks of all. A bar without a script or a style of its own. */
export function bar({ backfillId, total, done, failed, waiting, state }: Backfill): Html {
  const ended = total - waiting;
  const percent = total === 0 ? 100 : Math.floor((ended / total) * 100);
  const label = `Backfill ${backfillId}: ${ended} of ${total} fetch tasks ended`;
  return html`<progress max="${Math.max(total, 1)}" value="${total === 0 ? 1 : ended}" aria-label="${label}"></progress>
    <span class="number">${percent} %</span>
    ${total === 0 && state === "done" ? html`<span class="quiet">without fetch tasks</span>` : ""}
    <span class="visually-hidden">${done} done, ${failed} failed, ${waiting} waiting</span>`;
}

/** What the bar counts, by state. */
export function counts({ total, done, failed, waiting }: Backfill): Html {
  const cancelled = total - done - failed - waiting;
  return html`<dl class="facts">
    <div><dt>Fetch tasks</dt><dd>${count(total)}. Each is one request's worth of work. A refused one is split, so the number may grow.</dd></div>
    <div><dt>Done</dt><dd>${count(done)}</dd></div>
    <div><dt>Failed</dt><dd>${count(failed)}</dd></div>
    <div><dt>Waiting or at work</dt><dd>${count(waiting)}</dd></div>
    ${cancelled > 0 ? html`<div><dt>Cancelled</dt><dd>${count(cancelled)}</dd></div>` : ""}
  </dl>`;
}
