import { PlatformError } from "../../base/errors.ts";
import { METER, type Meter } from "../../domain/usage/meter.ts";
import { noteRefusal, wasRefusedWithin } from "../../store/catalog/sources.ts";
import type { CreatedSource, SourceDeps } from "./source.ts";

const REFUSED_FOR_MS = 3_600_000;

type KeyRefused = PlatformError & { readonly status: 401 | 403 };

/** A key that may not read another meter (403) can still read traces. A key that is not valid (401) reads nothing. */
export function isKeyRefused(error: unknown, meter: Meter = "traces"): error is KeyRefused {
  if (!(error instanceof PlatformError)) return false;
  return error.status === 401 || (error.status === 403 && meter === "traces");
}

/**
 * True if the server refuses the parameters of this meter, at all or to this key (docs/platform.md, Contracts). A
 * request about one workspace may be refused because of that workspace.
 */
export function isMeterRefused(meter: Meter, { status, locations, message, url }: PlatformError): boolean {
  if (METER[meter].isByWorkspace) return false;
  if (status === 403) return true;
  if (status !== 400 && status !== 422) return false;
  // The message repeats the URL, which always contains these words.
  return [...locations, message.replaceAll(url, "")].some((text) => /\b(kind|trace_tier)\b/.test(text));
}

export async function keepRefusal(source: CreatedSource & SourceDeps, error: unknown): Promise<void> {
  if (!isKeyRefused(error)) return;
  const { store, sourceId, config } = source;
  const key = config.apiKey.reveal();
  await noteRefusal(store.db, sourceId, { code: error.code, message: error.message });
  // The key was replaced meanwhile. Its refusal may have been lifted before it was stored, so it is lifted again.
  if (config.apiKey.reveal() !== key) await liftRefusal(source);
}

export async function liftRefusal({ store, sourceId }: CreatedSource): Promise<void> {
  await noteRefusal(store.db, sourceId, undefined);
}

/** A key is not sent if the platform refused it within the last hour. */
export async function isRefusedLately({ store, sourceId }: CreatedSource): Promise<boolean> {
  return wasRefusedWithin(store.db, sourceId, REFUSED_FOR_MS);
}
