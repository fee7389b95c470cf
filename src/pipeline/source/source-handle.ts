import {
  type EnteredSource,
  enterSource,
  isRefusedLately,
  type OpenSource,
  openSource,
  type SourceDeps,
} from "./source.ts";

/** A source in a process that runs on: entered once, contacted anew for every round. */
export interface SourceHandle {
  /** The source as Postgres knows it, without asking the platform. */
  known(): Promise<EnteredSource>;
  /** The source after contact with the platform, which is made anew when it is older than a round. */
  open(): Promise<OpenSource>;
  /** With new contact; undefined while the platform refuses the key and it is too early to try again. */
  openForSync(): Promise<OpenSource | undefined>;
}

export function createSourceHandle(deps: SourceDeps, roundMs: number): SourceHandle {
  let entered: Promise<EnteredSource> | undefined;
  let contact: { readonly source: Promise<OpenSource>; readonly at: number } | undefined;

  const known = () => {
    entered ??= enterSource(deps).catch((error) => {
      // Kept, a promise that failed would fail for ever.
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
    open: () => (contact !== undefined && deps.clock.now() - contact.at < roundMs ? contact.source : renew()),
    openForSync: async () => ((await isRefusedLately(await known())) ? undefined : renew()),
  };
}

/** The same source for slices that the queue has let through: it counted their requests, and it tries them again. */
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
