import { z } from "zod";
import "../../core/base/validation.ts";
import { didYouMean } from "../../core/base/spelling.ts";
import type { Tool } from "./tools.ts";

/** Metadata that n8n and other clients send with each call. */
const OF_CLIENTS = ["tool", "toolCallId", "tool_call_id", "sessionId", "session_id", "action", "chatInput"];

const CURSOR = z
  .number()
  .int()
  .min(0)
  .max(2_000_000_000)
  .nullish()
  .describe("Where to go on: next_cursor of the response before, with the same other arguments.");

/**
 * Clients in strict mode send null or an empty text for an argument without a value, and some write a number as text. An unknown
 * field is refused: a misspelled filter would change the question.
 */
export function inputOf({ input }: Tool) {
  const shape = { ...input, cursor: CURSOR };
  const names = Object.keys(shape);
  const unknown = (keys: readonly string[]) =>
    keys.map((key) => `${key} is not an argument${didYouMean(key, names)}`).join(", ");
  const object = z.strictObject(shape, {
    error: ({ code, keys }) =>
      code === "unrecognized_keys"
        ? `${unknown(keys as string[])}. The arguments are ${names.join(", ")}.`
        : undefined,
  });
  return z.preprocess(cleaned, object);
}

function cleaned(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  const isGiven = ([name, value]: [string, unknown]) =>
    !OF_CLIENTS.includes(name) && value !== null && !(typeof value === "string" && value.trim() === "");
  const { cursor, ...others } = Object.fromEntries(Object.entries(given).filter(isGiven));
  const isNumeric = typeof cursor === "string" && /^\s*\d+\s*$/.test(cursor);
  return { ...others, cursor: isNumeric ? Number(cursor) : cursor };
}

export function outputOf({ facts, list: [name, item] }: Tool) {
  return z.looseObject({
    ...facts,
    [name]: z.array(item),
    next_cursor: z.number().nullable().describe("Cursor of the rest. Null: this is all."),
    note: z.string().nullable(),
  });
}
