import { createSource, openSource } from "./open-source.ts";
import { isRefusedLately, liftRefusal } from "./refused-key.ts";
import type { CreatedSource, OpenSource, SourceDeps } from "./source.ts";

export interface SourceHandle {
  known(): Promise<CreatedSource>;
  open(): Promise<OpenSource>;
  /** Always makes contact. Undefined while the platform refuses the key and no retry is due. */
  openForSync(): Promise<OpenSource | undefined>;
}

export function createSourceHandle(deps: SourceDeps, syncMs: number): SourceHandle {
  const { apiKey } = deps.config;
  let created: { readonly source: Promise<CreatedSource>; readonly key: string } | undefined;
  let contact:
    | { readonly source: Promise<OpenSource>; readonly at: number; readonly key: string }
    | undefined;

  const known = () => {
    const key = apiKey.reveal();
    if (created?.key === key) return created.source;
    // The old key's refusal may have been stored after the new key, so it is lifted.
    const isRotated = created !== undefined;
    const made = {
      key,
      source: createSource(deps)
        .then(async (source) => {
          if (isRotated) await liftRefusal(source);
          return source;
        })
        .catch((error) => {
          // A rejected promise is not kept, or every later call would fail.
          if (created === made) created = undefined;
          throw error;
        }),
    };
    created = made;
    return made.source;
  };
  const renew = () => {
    const made = {
      at: deps.clock.now(),
      key: apiKey.reveal(),
      source: openSource(deps).catch((error) => {
        if (contact === made) contact = undefined;
        throw error;
      }),
    };
    contact = made;
    return made.source;
  };
  const isFresh = () =>
    contact !== undefined && deps.clock.now() - contact.at < syncMs && contact.key === apiKey.reveal();
  return {
    known,
    open: () => (contact !== undefined && isFresh() ? contact.source : renew()),
    openForSync: async () => ((await isRefusedLately(await known())) ? undefined : renew()),
  };
}

/** For queue tasks: the queue applies the rate limit and the retries. */
export function withinQueue(handle: SourceHandle): SourceHandle {
  const through = (source: OpenSource): OpenSource => {
    const { holdBack: _, ...rest } = source;
    return { ...rest, attempts: 1, admit: async () => {}, admitMore: source.admit };
  };
  return {
    known: handle.known,
    open: async () => through(await handle.open()),
    openForSync: async () => {
      const source = await handle.openForSync();
      return source && through(source);
    },
  };
}
