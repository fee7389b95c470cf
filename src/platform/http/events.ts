import { createParser } from "eventsource-parser";
import { cutFault, foreignFault } from "../parse/answer-fault.ts";
import { faultError } from "./errors.ts";
import type { PlatformAnswer } from "./http.ts";

/** Characters of one event: a task with its history is some kilobytes. */
const MAX_EVENT = 16_777_216;

/**
 * The data of server-sent events, in order. Leaving the loop early closes the connection. Only the reader of the content can see
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
  for await (const chunk of body.chunks()) {
    parser.feed(decoder.decode(chunk, { stream: true }));
    if (problem !== undefined) throw faultError(foreignFault(problem), body.status, context);
    const ready = received;
    received = [];
    yield* ready;
  }
}

export function cutError({ body, context }: PlatformAnswer) {
  return faultError(cutFault("the stream of events ended before its last one"), body.status, context);
}
