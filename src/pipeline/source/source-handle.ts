import { enterSource, openSource } from "./open-source.ts";
import { isRefusedLately } from "./refusal.ts";
import type { EnteredSource, OpenSource, SourceDeps } from "./source.ts";

/** A source in a long-running process: entered once, contacted again for every sync. */
export interface SourceHandle {
  /** The source as Postgres knows it, without a request to the platform. */
  known(): Promise<EnteredSource>;
  /** The source after contact with the platform, which is made again when it is older than a sync. */
  open(): Promise<OpenSource>;
  /** With new contact; undefined while the platform refuses the key and a retry is not due. */
  openForSync(): Promise<OpenSource | undefined>;
}

export function createSourceHandle(deps: SourceDeps, syncMs: number): SourceHandle {
  let entered: Promise<EnteredSource> | undefined;
  let contact: { readonly source: Promise<OpenSource>; readonly at: number } | undefined;

  const known = () => {
    entered ??= enterSource(deps).catch((error) => {
      // A rejected promise that is kept would reject for ever.
      entered = undefined;
      throw error;
    });
    return entered;
  };
  const renew = () => {
    const made = {
      at: deps.clock.now(),
      source: openSource(deps).catch((error) => {
        if (contact === made) contact = undefined;
        throw error;
      }),
    };
    contact = made;
    return made.source;
  };
  return {
    known,
    open: () => (contact !== undefined && deps.clock.now() - contact.at < syncMs ? contact.source : renew()),
    openForSync: async () => ((await isRefusedLately(await known())) ? undefined : renew()),
  };
}

/** The same source for slices from the queue, which applies the rate limit and the retries itself. */
export function withinQueue(handle: SourceHandle): SourceHandle {
  const through = (source: OpenSource): OpenSource => {
    const { holdBack: _, ...rest } = source;
    return { ...rest, attempts: 1, admit: async () => {} };
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
