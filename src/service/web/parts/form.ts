import { type Html, html } from "../html.ts";

/** A button that asks the server to change something. `csrf` is the form's token of the session (`context.csrf()`). */
export function postForm(
  action: string,
  {
    csrf,
    label,
    body = "",
    danger = false,
  }: { csrf: string; label: string; body?: Html | string; danger?: boolean },
): Html {
  return html`<form method="post" action="${action}">
    <input type="hidden" name="_csrf" value="${csrf}">
    ${body}
    <button class="${danger ? "danger" : ""}">${label}</button>
  </form>`;
}

/** Chooses one of several; with a source it is how a page of one source leads to that of another. */
export function choice(
  label: string,
  name: string,
  options: readonly { readonly value: string; readonly text: string }[],
  chosen: string | undefined,
): Html {
  return html`<label>${label}
    <select name="${name}">${options.map(
      ({ value, text }) =>
        html`<option value="${value}" ${value === chosen ? "selected" : ""}>${text}</option>`,
    )}</select>
  </label>`;
}

/** A day. Without JavaScript and calendar it is typed as YYYY-MM-DD. */
export function dayField(label: string, name: string, value: string | undefined): Html {
  return html`<label>${label}
    <input type="date" name="${name}" value="${value ?? ""}">
  </label>`;
}
