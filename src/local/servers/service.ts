/** A server to use. `url` holds its password: not for logs. */
export interface Service {
  readonly url: string;
  readonly origin: "named" | "docker" | "local";
  /** Stops a server that was started here, and removes its data unless a `dataDir` was given. A named server stays. */
  close(): Promise<void>;
}

export interface ServicesOptions {
  /**
   * Folder for data that survives a restart, in `postgres/` and `redis/`, for one owner at a time. Without it, a temporary
   * folder is used and removed on close. A kept folder is always served by a local process: a container lives seconds
   * longer than its killed owner, and Postgres cannot see across containers that its directory is in use.
   */
  readonly dataDir?: string;
  /** Prints progress, such as an installation or a download. By default to stderr. */
  readonly say?: (line: string) => void;
  readonly env?: NodeJS.ProcessEnv;
}

/** The options with their defaults filled in. */
export interface StartInput {
  readonly dataDir: string | undefined;
  readonly say: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
}
