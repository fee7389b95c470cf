import { html } from "../html.ts";
import type { Web } from "../routes.ts";

/** What is trusted, what is wrong, and what to do now. */
export function addOverview(web: Web): void {
  web.page("/", {}, async () => ({ title: "Overview", body: html`<p>Nothing is here yet.</p>` }));
}
