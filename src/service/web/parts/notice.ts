import { type Html, html } from "../html.ts";

const SIGNS = { good: "✓", info: "i", warn: "!", bad: "✕" } as const;
const WORDS = { good: "Good", info: "Note", warn: "Attention", bad: "Problem" } as const;

/** A sentence that stands out, with a sign and a word besides its colour. */
export function notice(kind: keyof typeof SIGNS, body: Html | string): Html {
  return html`<div class="notice ${kind}"><span class="sign" aria-hidden="true">${SIGNS[kind]}</span>
    <div><span class="visually-hidden">${WORDS[kind]}: </span>${body}</div></div>`;
}
