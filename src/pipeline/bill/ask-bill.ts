import { PlatformError } from "../../errors.ts";
import { askAside } from "../source/ask.ts";
import type { OpenSource } from "../source/source.ts";

/** What a part of the bill answered, or why the server does not show it to this key. */
export type BillAnswer<T> = { readonly answer: T } | { readonly refusal: string };

/** The bill may need more permission than usage, and a server may be without it. */
const REFUSALS = [401, 403, 404, 405];

/**
 * Asks for a part of the bill. What refuses it says nothing of the key's right to read usage, so the source goes on. Throws what
 * else went wrong.
 */
export async function askBill<T>(source: OpenSource, send: () => Promise<T>): Promise<BillAnswer<T>> {
  try {
    return { answer: await askAside(source, send) };
  } catch (error) {
    if (!(error instanceof PlatformError) || !REFUSALS.includes(error.status ?? 0)) throw error;
    return { refusal: error.message };
  }
}

export function refusalOf(asked: BillAnswer<unknown>): string | null {
  return "refusal" in asked ? asked.refusal : null;
}
