/**
 * The built-in assistant, without model or network (our own). `delay=<ms>` in the text makes it slow, the word `fail`
 * makes it fail; it answers with the text it got.
 */
export const ASSISTANT = {
  /** Name and id both address it (docs/platform.md, Agent server). The id is what examples show for `agent`. */
  name: "agent",
  id: "fe096781-5601-53d2-b2f6-0d3403f7e9ca",
  description: "Says back what it is told.",
} as const;

/** Longer than any test. */
const LONGEST_MS = 600_000;

export interface Performance {
  readonly delayMs: number;
  readonly outcome: { readonly reply: string } | { readonly error: string };
}

export function isAssistant(nameOrId: string): boolean {
  return nameOrId === ASSISTANT.name || nameOrId === ASSISTANT.id;
}

export function perform(text: string): Performance {
  const delayMs = Math.min(Number(/\bdelay=(\d{1,9})\b/.exec(text)?.[1] ?? 0), LONGEST_MS);
  const outcome = /\bfail\b/i.test(text)
    ? { error: "The input asks for a failure" }
    : { reply: `Echo: ${text}` };
  return { delayMs, outcome };
}
