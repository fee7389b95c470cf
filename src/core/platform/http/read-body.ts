import "../../base/validation.ts";
import { createParser } from "eventsource-parser";
import type { z } from "zod";
import { NestedTooDeepError, parseJson } from "../../base/json.ts";
import { hasKeyTwice, ValueScanner } from "../parse/json-scan.ts";
import { cutError, foreignError, partError, ResponseError } from "../parse/response-error.ts";
import { describeValue } from "../parse/wire-values.ts";
import { platformErrorOf } from "./errors.ts";
import type { GetRequest, PlatformHttp, PlatformResponse, SendRequest } from "./http.ts";

/** Limit of a JSON document. Ten thousand workspaces take some 5 MB. */
const MAX_BYTES = 33_554_432;

type Fail = (fault: ResponseError) => unknown;

export function responseError(error: unknown, { body, context }: PlatformResponse): unknown {
  return error instanceof ResponseError ? platformErrorOf(error, body.status, context) : error;
}

/** Errors: those of `get`, `response_cut`, `response_invalid`. */
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

/** Errors: `response_cut`, `response_too_large`, `response_invalid`. */
export async function readJson<T>(response: PlatformResponse, schema: z.ZodType<T>): Promise<T> {
  const fail: Fail = (fault) => responseError(fault, response);
  const chunks: Buffer[] = [];
  for await (const chunk of response.body.chunks({ limit: MAX_BYTES })) chunks.push(chunk);
  const document = parseDocument(Buffer.concat(chunks), fail);
  // Lists of the platform with several pages name the number of all entries here.
  const all = Number(response.body.header("x-pagination-total"));
  if (Array.isArray(document) && all > document.length) throw fail(partError(document.length, all));
  return checkedJson(document, schema, fail);
}

export function checkedJson<T>(value: unknown, schema: z.ZodType<T>, fail: Fail): T {
  const checked = schema.safeParse(value);
  if (checked.success) return checked.data;
  const [issue] = checked.error.issues;
  const path = issue?.path.join(".") || "the response";
  throw fail(foreignError(`${path} is refused: ${issue?.message ?? "unknown reason"}`));
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
      throw fail(foreignError(`the response cannot be read: ${error.message}`));
    // JSON that begins and never closes was cut; anything else is another page.
    const begun = document === "" || /^[[{]/.test(document);
    if (begun && new ValueScanner().scan(Buffer.from(document), 0) === -1)
      throw fail(cutError("the response ends within its JSON"));
    const beginning = describeValue(document.slice(0, 60));
    throw fail(foreignError(`the response is not JSON: it begins with ${beginning}`));
  }
  throw fail(foreignError("an object of the response has a key twice"));
}

/** The longest event that is read, in characters. A task with its history takes a few kilobytes. */
const MAX_EVENT = 16_777_216;

/**
 * Data of server-sent events, in order; a JSON document counts as one event. Leaving the loop early closes the connection.
 * The reader must notice an early end and throw `cutStream`. Errors: `response_invalid`, `response_cut`.
 */
export async function* eventData(response: PlatformResponse): AsyncGenerator<string, void, undefined> {
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
  for await (const chunk of response.body.chunks()) {
    const text = decoder.decode(chunk, { stream: true });
    // No line of an event begins with a brace.
    if (!hasBegun && /^\s*\{/.test(text)) document = "";
    hasBegun ||= text.trim() !== "";
    if (document === undefined) parser.feed(text);
    else document += text;
    if ((document?.length ?? 0) > MAX_EVENT) problem = `the response is larger than ${MAX_EVENT} characters`;
    if (problem !== undefined) throw responseError(foreignError(problem), response);
    const ready = received;
    received = [];
    yield* ready;
  }
  if (document !== undefined) yield document.trim();
}

/** `effect`: as in `SendRequest`, according to the events so far. */
export function cutStream({ body, context }: PlatformResponse, effect: string) {
  const fault = cutError("the stream of events ended before its last one");
  return platformErrorOf(fault, body.status, { ...context, effect });
}
