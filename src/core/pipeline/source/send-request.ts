import { isKeyRefused, keepRefusal } from "./refused-key.ts";
import { withRetries } from "./retries.ts";
import type { CreatedSource, SourceDeps } from "./source.ts";

/** Sends one request within the rate limit, with retries. Stores a refused key for every process. Throws the last error. */
export async function sendRequest<T>(
  source: SourceDeps & CreatedSource,
  send: () => Promise<T>,
  attempts?: number,
): Promise<T> {
  try {
    return await sendAside(source, send, attempts);
  } catch (error) {
    await keepRefusal(source, error);
    throw error;
  }
}

/** Does not store a refused key: the request may need more than a usage key, so the source may still work. */
export async function sendAside<T>(
  source: SourceDeps,
  send: () => Promise<T>,
  attempts?: number,
): Promise<T> {
  return withRetries(
    source,
    async () => {
      await source.admit();
      source.signal?.throwIfAborted();
      source.gate?.check();
      return withCurrentKey(source, send);
    },
    attempts,
  );
}

async function withCurrentKey<T>({ config: { apiKey } }: SourceDeps, send: () => Promise<T>): Promise<T> {
  for (let key = apiKey.reveal(); ; key = apiKey.reveal()) {
    try {
      return await send();
    } catch (error) {
      if (!isKeyRefused(error) || apiKey.reveal() === key) throw error;
    }
  }
}
