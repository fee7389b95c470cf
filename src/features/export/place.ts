import { randomBytes } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { UsageError } from "../../core/base/errors.ts";
import { loadOptional } from "../../core/base/optional.ts";
import { placeProblem } from "../../core/base/url.ts";

/** The file exists after `commit`, or not at all. */
export interface PlaceFile {
  write(chunk: Uint8Array): Promise<void>;
  commit(): Promise<void>;
  abandon(): Promise<void>;
}

/**
 * A folder, or a prefix of a bucket. Names are relative, with `/` between their parts. Errors of all methods:
 * `files_place_refused` (UsageError: no such bucket, no rights, no space), `files_place_away` (UnreachableError).
 */
export interface Place {
  readonly address: string;
  readonly endpoint?: URL | undefined;
  create(name: string): Promise<PlaceFile>;
  read(name: string): Promise<Uint8Array | undefined>;
  /** Size of each file below a folder in bytes, by name. The empty folder is all of the place. */
  list(folder: string): Promise<ReadonlyMap<string, number>>;
  /** A missing file is no error. */
  remove(name: string): Promise<void>;
}

export interface PlaceOptions {
  readonly signal: AbortSignal;
}

const S3 = /^s3:\/\/([^/]+)(?:\/(.*?))?\/*$/;

export async function openPlace(address: string, options: PlaceOptions): Promise<Place> {
  const problem = placeProblem(address);
  if (problem !== undefined)
    throw new UsageError({
      code: "files_place_refused",
      message: `The address of the files ${problem}.`,
      next: "Correct --to or USAGE_EXPORT_DIR.",
    });
  const [, bucket, prefix = ""] = S3.exec(address) ?? [];
  if (bucket === undefined) return openFolder(address);
  const { openBucket } = await loadOptional(() => import("./bucket.ts"));
  return openBucket({ address, bucket, prefix }, options);
}

/** Incomplete file, which stays if its process is killed. */
const PART = /\.[0-9a-f]{8}\.part$/;
/** An older incomplete file is left behind: writing one takes far less. */
const PART_IS_LEFT_AFTER_MS = 86_400_000;

function openFolder(address: string): Place {
  const root = resolve(address);
  const orRefused = <T>(work: Promise<T>) =>
    work.catch((cause) => {
      throw refused(root, cause);
    });
  const read = async (name: string) => {
    return orRefused(readFile(join(root, name)).catch(ifMissing(undefined)));
  };
  return {
    address: root,
    read,
    async create(name) {
      const path = join(root, name);
      const part = `${path}.${randomBytes(4).toString("hex")}.part`;
      await orRefused(mkdir(dirname(path), { recursive: true }));
      const file = await orRefused(open(part, "wx"));
      let [isOpen, isWhole] = [true, false];
      return {
        write: (chunk) => orRefused(file.writeFile(chunk)),
        async commit() {
          // A full disk may show only here.
          await orRefused(file.sync());
          isOpen = false;
          await orRefused(file.close());
          await orRefused(rename(part, path));
          isWhole = true;
        },
        async abandon() {
          if (isWhole) return;
          if (isOpen) await file.close().catch(() => {});
          isOpen = false;
          await rm(part, { force: true }).catch(() => {});
        },
      };
    },
    async list(folder) {
      const found = new Map<string, number>();
      const below = await orRefused(
        readdir(join(root, folder), { recursive: true, withFileTypes: true }).catch(ifMissing([])),
      );
      for (const entry of below) {
        if (!entry.isFile()) continue;
        const path = join(entry.parentPath, entry.name);
        const facts = await orRefused(stat(path).catch(ifMissing(undefined)));
        if (facts === undefined) continue;
        if (!PART.test(entry.name)) found.set(path.slice(root.length + 1).replaceAll(sep, "/"), facts.size);
        else if (facts.mtimeMs < Date.now() - PART_IS_LEFT_AFTER_MS) await rm(path, { force: true });
      }
      return found;
    },
    remove: (name) => orRefused(rm(join(root, name), { force: true })),
  };
}

function ifMissing<T>(instead: T) {
  return (cause: NodeJS.ErrnoException): T => {
    if (cause.code === "ENOENT") return instead;
    throw cause;
  };
}

function refused(root: string, cause: NodeJS.ErrnoException): UsageError {
  const isFull = cause.code === "ENOSPC" || cause.code === "EDQUOT";
  return new UsageError({
    code: "files_place_refused",
    message: `The folder ${root} cannot be used: ${isFull ? "no space is left" : cause.message}. The files of the last manifest are complete.`,
    next: isFull
      ? "Free some space. Files that were replaced are deleted after a week."
      : "Check USAGE_EXPORT_DIR and who may write there.",
    cause,
  });
}
