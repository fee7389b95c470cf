import type { z } from "zod";
import { cutFault, foreignFault } from "../parse/answer-fault.ts";
import { ValueScanner } from "../parse/json-scan.ts";
import { describeValue } from "../parse/wire-values.ts";
import { faultError } from "./errors.ts";
import type { GetRequest, PlatformAnswer, PlatformHttp, SendRequest } from "./http.ts";
import "../../validation.ts";

/** An organisation of ten thousand workspaces lists some 5 MB. */
const MAX_BYTES = 33_554_432;

type Fail = (fault: ReturnType<typeof cutFault>) => Error;

/** The answer of a GET as a checked document. Errors: those of `get`, `answer_cut`, `answer_invalid`. */
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

/** Reads a small document whole and checks it against its schema. Errors: `answer_cut`, `answer_too_large`, `answer_invalid`. */
export async function readJson<T>({ body, context }: PlatformAnswer, schema: z.ZodType<T>): Promise<T> {
  const fail: Fail = (fault) => faultError(fault, body.status, context);
  const chunks: Buffer[] = [];
  for await (const chunk of body.chunks({ limit: MAX_BYTES })) chunks.push(chunk);
  return checkedJson(parseDocument(Buffer.concat(chunks), fail), schema, fail);
}

/** The value as its schema returns it. The error names the path that the schema refuses. */
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
    return JSON.parse(document);
  } catch {
    // JSON that begins and never closes was cut; anything else is another page.
    const begun = document === "" || /^[[{]/.test(document);
    if (begun && new ValueScanner().scan(Buffer.from(document), 0) === -1)
      throw fail(cutFault("the answer ends within its JSON"));
    const beginning = describeValue(document.slice(0, 60));
    throw fail(foreignFault(`the answer is not JSON: it begins with ${beginning}`));
  }
}
