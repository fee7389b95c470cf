import { createParser } from "eventsource-parser";
import { cutFault, foreignFault } from "../parse/answer-fault.ts";
import { faultError } from "./errors.ts";
import type { PlatformAnswer } from "./http.ts";

/** Characters of one event: a task with its history is some kilobytes. */
const MAX_EVENT = 16_777_216;

/**
 * The data of server-sent events, in order. A JSON document in their place counts as one event. Leaving the loop early closes the connection. Only the reader of the content can see
 * that the stream ended too early; it then throws `cutError`. Errors: `answer_invalid`, `answer_cut`.
 */
export async function* eventData(answer: PlatformAnswer): AsyncGenerator<string, void, undefined> {
  const { body, context } = answer;
  let received: string[] = [];
  let problem: string | undefined;
  const parser = createParser({
    maxBufferSize: MAX_EVENT,
    onEvent: ({ data }) => received.push(data),
    onError: (error) => {
      // Unknown fields are ignored (WHATWG, server-sent events); only an event that is too large ends the stream.
      if (error.type === "max-buffer-size-exceeded")
        problem = `an event is larger than ${MAX_EVENT} characters`;
    },
  });
  const decoder = new TextDecoder();
  let hasBegun = false;
  let document: string | undefined;
  for await (const chunk of body.chunks()) {
    const text = decoder.decode(chunk, { stream: true });
    // No line of an event begins with a brace.
    if (!hasBegun && /^\s*\{/.test(text)) document = "";
    hasBegun ||= text.trim() !== "";
    if (document === undefined) parser.feed(text);
    else document += text;
    if ((document?.length ?? 0) > MAX_EVENT) problem = `the answer is larger than ${MAX_EVENT} characters`;
    if (problem !== undefined) throw faultError(foreignFault(problem), body.status, context);
    const ready = received;
    received = [];
    yield* ready;
  }
  if (document !== undefined) yield document.trim();
}

/** `effect`: as in `SendRequest`, as far as the events told. */
export function cutError({ body, context }: PlatformAnswer, effect: string) {
  const fault = cutFault("the stream of events ended before its last one");
  return faultError(fault, body.status, { ...context, effect });
}
