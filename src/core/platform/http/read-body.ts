import "../../base/validation.ts";
import { createParser } from "eventsource-parser";
import type { z } from "zod";
import { NestedTooDeepError, parseJson } from "../../base/json.ts";
import { AnswerFault, cutFault, foreignFault } from "../parse/answer-fault.ts";
import { hasKeyTwice, ValueScanner } from "../parse/json-scan.ts";
import { describeValue } from "../parse/wire-values.ts";
import { faultError } from "./errors.ts";
import type { GetRequest, PlatformAnswer, PlatformHttp, SendRequest } from "./http.ts";

/** Ten thousand workspaces take some 5 MB. */
const MAX_BYTES = 33_554_432;

type Fail = (fault: AnswerFault) => unknown;

/** Adds the request to a fault of the response; returns another error unchanged. */
export function answerError(error: unknown, { body, context }: PlatformAnswer): unknown {
  return error instanceof AnswerFault ? faultError(error, body.status, context) : error;
}

/** Errors: those of `get`, `answer_cut`, `answer_invalid`. */
export async function getJson<T>(http: PlatformHttp, request: GetRequest, schema: z.ZodType<T>): Promise<T> {
  return readJson(await http.get(request), schema);
}

export async function sendJson<T>(
  http: PlatformHttp,
  request: SendRequest,
  schema: z.ZodType<T>,
): Promise<T> {
  return readJson(await http.send(request), schema);
}

/** Errors: `answer_cut`, `answer_too_large`, `answer_invalid`. */
export async function readJson<T>(answer: PlatformAnswer, schema: z.ZodType<T>): Promise<T> {
  const fail: Fail = (fault) => answerError(fault, answer);
  const chunks: Buffer[] = [];
  for await (const chunk of answer.body.chunks({ limit: MAX_BYTES })) chunks.push(chunk);
  return checkedJson(parseDocument(Buffer.concat(chunks), fail), schema, fail);
}

export function checkedJson<T>(value: unknown, schema: z.ZodType<T>, fail: Fail): T {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  const path = issue?.path.join(".") || "the answer";
  throw fail(foreignFault(`${path} is refused: ${issue?.message ?? "unknown reason"}`));
}

function parseDocument(bytes: Buffer, fail: Fail): unknown {
  const document = bytes
    .toString("utf8")
    .replace(/^\u{FEFF}/u, "")
    .trim();
  try {
    const value = parseJson(document);
    if (!hasKeyTwice(bytes, value)) return value;
  } catch (error) {
    if (error instanceof NestedTooDeepError)
      throw fail(foreignFault(`the answer cannot be read: ${error.message}`));
    // JSON that begins and never closes was cut; anything else is another page.
    const begun = document === "" || /^[[{]/.test(document);
    if (begun && new ValueScanner().scan(Buffer.from(document), 0) === -1)
      throw fail(cutFault("the answer ends within its JSON"));
    const beginning = describeValue(document.slice(0, 60));
    throw fail(foreignFault(`the answer is not JSON: it begins with ${beginning}`));
  }
  throw fail(foreignFault("an object of the answer has a key twice"));
}

/** Characters of one event; a task with its history has some kilobytes. */
const MAX_EVENT = 16_777_216;

/**
 * Data of server-sent events, in order; a JSON document counts as one event. Leaving the loop early closes the connection.
 * The reader must notice an early end and throw `cutStream`. Errors: `answer_invalid`, `answer_cut`.
 */
export async function* eventData(answer: PlatformAnswer): AsyncGenerator<string, void, undefined> {
  let received: string[] = [];
  let problem: string | undefined;
  const parser = createParser({
    maxBufferSize: MAX_EVENT,
    onEvent: ({ data }) => received.push(data),
    onError: (error) => {
      // Unknown fields are ignored (WHATWG, server-sent events). Only an event that is too large ends the stream.
      if (error.type === "max-buffer-size-exceeded")
        problem = `an event is larger than ${MAX_EVENT} characters`;
    },
  });
  const decoder = new TextDecoder();
  let hasBegun = false;
  let document: string | undefined;
  for await (const chunk of answer.body.chunks()) {
    const text = decoder.decode(chunk, { stream: true });
    // No line of an event begins with a brace.
    if (!hasBegun && /^\s*\{/.test(text)) document = "";
    hasBegun ||= text.trim() !== "";
    if (document === undefined) parser.feed(text);
    else document += text;
    if ((document?.length ?? 0) > MAX_EVENT) problem = `the answer is larger than ${MAX_EVENT} characters`;
    if (problem !== undefined) throw answerError(foreignFault(problem), answer);
    const ready = received;
    received = [];
    yield* ready;
  }
  if (document !== undefined) yield document.trim();
}

/** `effect`: as in `SendRequest`, as far as the events told. */
export function cutStream({ body, context }: PlatformAnswer, effect: string) {
  const fault = cutFault("the stream of events ended before its last one");
  return faultError(fault, body.status, { ...context, effect });
}
