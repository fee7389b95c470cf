import { PlatformError } from "../../errors.ts";
import { noteRefusal, wasRefusedWithin } from "../../store/catalog/sources.ts";
import type { EnteredSource, SourceDeps } from "./source.ts";

/** How long a refused key is left alone. */
const REFUSED_FOR_MS = 3_600_000;

type KeyRefused = PlatformError & { readonly status: 401 | 403 };

export function isKeyRefused(error: unknown): error is KeyRefused {
  return error instanceof PlatformError && (error.status === 401 || error.status === 403);
}

/** Keeps a refused key (401, 403), so that no other process sends it again and `status` shows why. */
export async function keepRefusal(source: EnteredSource & SourceDeps, error: unknown): Promise<void> {
  if (!isKeyRefused(error)) return;
  const { store, sourceId, config } = source;
  const key = config.apiKey.reveal();
  await noteRefusal(store.db, sourceId, { code: error.code, message: error.message });
  // Another key came meanwhile, and whoever noticed may have lifted the refusal before it was noted.
  if (config.apiKey.reveal() !== key) await liftRefusal(source);
}

/** Forgets it: another key is used now. */
export async function liftRefusal({ store, sourceId }: EnteredSource): Promise<void> {
  await noteRefusal(store.db, sourceId, undefined);
}

/** Whether the platform refused the key within the last hour. Nothing sends it then. */
export async function isRefusedLately({ store, sourceId }: EnteredSource): Promise<boolean> {
  return wasRefusedWithin(store.db, sourceId, REFUSED_FOR_MS);
}
