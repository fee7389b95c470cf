import { PlatformError } from "../../errors.ts";
import { noteRefusal, wasRefusedWithin } from "../../store/catalog/sources.ts";
import type { EnteredSource } from "./source.ts";

/** How long a refused key is left alone. */
const REFUSED_FOR_MS = 3_600_000;

type KeyRefused = PlatformError & { readonly status: 401 | 403 };

export function isKeyRefused(error: unknown): error is KeyRefused {
  return error instanceof PlatformError && (error.status === 401 || error.status === 403);
}

/** Keeps a refused key (401, 403), so that no other process sends it again and `status` shows why. */
export async function keepRefusal({ store, sourceId }: EnteredSource, error: unknown): Promise<void> {
  if (!isKeyRefused(error)) return;
  await noteRefusal(store.db, sourceId, { code: error.code, message: error.message });
}

/** Whether the platform refused the key within the last hour. Nothing sends it then. */
export async function isRefusedLately({ store, sourceId }: EnteredSource): Promise<boolean> {
  return wasRefusedWithin(store.db, sourceId, REFUSED_FOR_MS);
}
