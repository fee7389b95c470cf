/** A server to use. `url` holds its password: not for logs. */
export interface Service {
  readonly url: string;
  readonly origin: "named" | "docker" | "local";
  /** Stops what was started here, and removes its data unless a `dataDir` was given. A named server is left alone. */
  close(): Promise<void>;
}

export interface ServicesOptions {
  /**
   * Folder whose data survives stop and start (in `postgres/` and `redis/` under it); one owner at a time. Absent: a
   * temporary folder, removed on close. A kept folder is always served by a local process: a container outlives a
   * killed owner by seconds, and Postgres cannot see across containers that its directory is already in use.
   */
  readonly dataDir?: string;
  /** Progress worth a line (an installation, a download); stderr by default. */
  readonly say?: (line: string) => void;
  readonly env?: NodeJS.ProcessEnv;
}

/** What every way of starting a server needs to know, with the defaults filled in. */
export interface StartInput {
  readonly dataDir: string | undefined;
  readonly say: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
}
