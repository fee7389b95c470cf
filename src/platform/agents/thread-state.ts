import { z } from "zod";

interface Message {
  /** `human`, `ai` and others. */
  readonly type: string;
  readonly content: string;
}

/** A text, or parts: the texts count, parts of other kinds are left out. Anything else is shown as JSON. */
const part = z.union([
  z.string(),
  z.looseObject({ text: z.string() }).transform(({ text }) => text),
  z.unknown().transform(() => ""),
]);
const content = z.union([
  z.string(),
  z.array(part).transform((texts) => texts.join("")),
  z.unknown().transform((other) => (other == null ? "" : JSON.stringify(other))),
]);
const message = z.object({ type: z.string().default(""), content });
export const stateSchema = z.object({
  values: z
    .object({ messages: z.array(message).nullish() })
    .nullish()
    .transform((values): { messages: Message[] } => ({ messages: values?.messages ?? [] })),
});

/**
 * What was answered to the last message with this text, before the next one of a person; null if nothing was. If no message
 * has the text, it is known only of a run that succeeded that the last message may be its reply.
 */
export function replyTo(
  text: string,
  messages: readonly Message[],
  { hasSucceeded = false } = {},
): string | null {
  const at = messages.findLastIndex((one) => isHuman(one) && one.content === text);
  if (at === -1 && !hasSucceeded) return null;
  const next = at === -1 ? -1 : messages.findIndex((one, index) => index > at && isHuman(one));
  const last = messages[(next === -1 ? messages.length : next) - 1];
  return last?.type === "ai" ? last.content : null;
}

function isHuman({ type }: Message): boolean {
  return type === "human";
}
