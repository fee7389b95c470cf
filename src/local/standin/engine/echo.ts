/**
 * The built-in assistant, without model or network (our own). `delay=<ms>` in the text makes it slow, the word `fail`
 * makes it fail; it answers with the text it got.
 */
export const ASSISTANT = {
  /** Name and id both address it (docs/platform.md, Agent server). The id is what examples show for `agent`. */
  name: "agent",
  id: "fe096781-5601-53d2-b2f6-0d3403f7e9ca",
  description: "Echoes the text it gets.",
} as const;

/** Longer than any test. */
const LONGEST_MS = 600_000;

export function isAssistant(nameOrId: string): boolean {
  return nameOrId === ASSISTANT.name || nameOrId === ASSISTANT.id;
}

/** How long a run on that text takes, and what it answers; `reply` is undefined for a failure. */
export function perform(text: string): { delayMs: number; reply: string | undefined } {
  const delayMs = Math.min(Number(/\bdelay=(\d{1,9})\b/.exec(text)?.[1] ?? 0), LONGEST_MS);
  return { delayMs, reply: /\bfail\b/i.test(text) ? undefined : `Echo: ${text}` };
}
