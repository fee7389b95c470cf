import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { EtlError, UsageError } from "../../core/base/errors.ts";
import { printable } from "../../core/base/printable.ts";

export interface Target {
  /** Resolves when the chunk is no longer in memory. Errors: `export_unwritable`, `export_closed`. */
  write(chunk: Uint8Array): Promise<void>;
  commit(): Promise<void>;
  abandon(): Promise<void>;
}

/** The file is renamed at the end, so its name never means a part of the export. */
export async function openFileTarget(path: string): Promise<Target> {
  const found = await stat(path).catch(() => undefined);
  if (found?.isDirectory() === true) {
    throw unwritable(path, new Error("it is a directory"));
  }
  // A rename would replace a device or a named pipe.
  const isPlain = found === undefined || found.isFile();
  const written = isPlain
    ? join(dirname(path), `.${basename(path)}.${randomBytes(4).toString("hex")}.part`)
    : path;
  const flags = isPlain ? constants.O_CREAT | constants.O_EXCL | constants.O_WRONLY : constants.O_WRONLY;
  const file: FileHandle = await open(written, flags).catch((cause) => {
    throw unwritable(path, cause);
  });
  let isOpen = true;
  const orUnwritable = <T>(work: Promise<T>) =>
    work.catch((cause) => {
      throw unwritable(path, cause);
    });
  return {
    write: (chunk) => orUnwritable(file.writeFile(chunk)),
    async commit() {
      // A full disk may show only here.
      if (isPlain) await orUnwritable(file.sync());
      await orUnwritable(file.close());
      isOpen = false;
      if (isPlain) await orUnwritable(rename(written, path));
    },
    async abandon() {
      if (!isOpen) return;
      isOpen = false;
      await file.close().catch(() => {});
      if (isPlain) await rm(written, { force: true });
    },
  };
}

/** Output to stdout cannot be removed, so a failure shows only in the exit code. */
export function openStdoutTarget(stdout: NodeJS.WriteStream): Target {
  let failure: Error | undefined;
  // A piece may end in the middle of a character.
  const text = new TextDecoder();
  // Without a listener a closed pipe raises an uncaught exception.
  stdout.on("error", (error) => {
    failure ??= error;
  });
  return {
    write: (chunk) =>
      new Promise((resolve, reject) => {
        const done = (cause: Error | null | undefined) => (cause ? reject(closed(cause)) : resolve());
        if (failure !== undefined) return done(failure);
        // A file gets the exact text, a terminal no control characters.
        stdout.write(stdout.isTTY ? printable(text.decode(chunk, { stream: true })) : chunk, done);
      }),
    commit: async () => {
      if (failure !== undefined) throw closed(failure);
    },
    abandon: async () => {},
  };
}

/** The reader has closed the pipe, as `head` does. */
export class ReaderLeftError extends EtlError {}

function closed(cause: Error & { code?: string }): EtlError {
  const Fault = cause.code === "EPIPE" ? ReaderLeftError : EtlError;
  return new Fault({
    code: "export_closed",
    message: `The output cannot be written: ${cause.message}.`,
    next: "Free disk space, or write to a file with --out.",
    cause,
  });
}

function unwritable(path: string, cause: Error & { code?: string }): EtlError {
  const isFull = cause.code === "ENOSPC" || cause.code === "EDQUOT" || cause.code === "EFBIG";
  const Fault = isFull ? EtlError : UsageError;
  return new Fault({
    code: "export_unwritable",
    message: `${path} cannot be written: ${isFull ? "no space is left" : cause.message}. No part of the export was kept.`,
    next: isFull ? "Free some space, or export a shorter range." : "Choose another file with --out.",
    cause,
  });
}
