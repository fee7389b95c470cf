import { afterAll, beforeAll, onTestFinished } from "vitest";

type Close = () => unknown;

/** Closers of what is opened now for all tests of a file. */
let shared: Close[] | undefined;

/** Closes something when the test ends, or after the last test of the file where all of them share it. */
export function atEnd(close: Close): void {
  if (shared === undefined) onTestFinished(async () => void (await close()));
  else shared.push(close);
}

/** Opens once what all tests of a file read, and none of them changes. */
export function share<T>(open: () => Promise<T>): () => T {
  const closers: Close[] = [];
  let opened: T;
  beforeAll(async () => {
    shared = closers;
    try {
      opened = await open();
    } finally {
      shared = undefined;
    }
  });
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });
  return () => opened;
}
