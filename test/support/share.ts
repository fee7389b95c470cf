import { afterAll, beforeAll, onTestFinished } from "vitest";

type Close = () => unknown;

let shared: Close[] | undefined;

export function atEnd(close: Close): void {
  if (shared === undefined) onTestFinished(async () => void (await close()));
  else shared.push(close);
}

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
