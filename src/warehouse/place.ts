/** A file that is being written: whole under its name after `commit`, or not at all. */
export interface PlaceFile {
  write(chunk: Uint8Array): Promise<void>;
  commit(): Promise<void>;
  /** Does nothing after `commit`. */
  abandon(): Promise<void>;
}

/**
 * Where files for a warehouse lie: a folder, or a part of a bucket. Names are relative, with `/` between their parts.
 * Errors of all: `files_place_refused` (UsageError: no such bucket, no rights, no space), `files_place_away` (UnreachableError).
 */
export interface Place {
  /** As people name it: a path, or `s3://bucket/prefix`. */
  readonly address: string;
  create(name: string): Promise<PlaceFile>;
  /** Undefined: there is no such file. */
  read(name: string): Promise<Uint8Array | undefined>;
  /** Bytes by name, of all files below a folder. */
  list(folder: string): Promise<ReadonlyMap<string, number>>;
  /** No error if it is gone already. */
  remove(name: string): Promise<void>;
}

export interface PlaceOptions {
  readonly signal: AbortSignal;
}

const S3 = /^s3:\/\/([^/]+)(?:\/(.*?))?\/*$/;

/** What is needed for a bucket is loaded for a bucket only. */
export async function openPlace(address: string, options: PlaceOptions): Promise<Place> {
  const [, bucket, prefix = ""] = S3.exec(address) ?? [];
  if (bucket === undefined) {
    const { openFolder } = await import("./folder.ts");
    return openFolder(address);
  }
  const { openBucket } = await import("./bucket.ts");
  return openBucket({ address, bucket, prefix }, options);
}
