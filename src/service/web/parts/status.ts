import { type Html, html } from "../html.ts";

/** The states of a day (docs/views.md), the worst first, each with a sign, a word and what it means. */
export const STATUSES = {
  not_available: { glyph: "∅", word: "not available", about: "the server does not answer it" },
  failed: { glyph: "✕", word: "failed", about: "the last answer could not be used" },
  missing: { glyph: "○", word: "missing", about: "not loaded" },
  unverified: { glyph: "?", word: "unverified", about: "access to the workspace is not proven" },
  provisional: { glyph: "◐", word: "provisional", about: "loaded, and may still change" },
  empty: { glyph: "–", word: "empty", about: "final, without usage" },
  ok: { glyph: "●", word: "final", about: "loaded and final" },
} as const;
export type Status = keyof typeof STATUSES;

/** A state as sign, word and colour. `short`: the word is for screen readers and the title only. */
export function badge(status: Status, { short = false }: { short?: boolean } = {}): Html {
  const { glyph, word, about } = STATUSES[status];
  return html`<span class="status ${status}" title="${word}: ${about}"><span aria-hidden="true">${glyph}</span>
    <span class="${short ? "visually-hidden" : "word"}">${word}</span></span>`;
}

/** What each state means, once a page. */
export function legend(): Html {
  const all = Object.keys(STATUSES) as Status[];
  return html`<dl class="legend">${all.map(
    (one) => html`<div><dt>${badge(one)}</dt><dd>${STATUSES[one].about}</dd></div>`,
  )}</dl>`;
}
