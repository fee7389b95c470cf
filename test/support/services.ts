import { inject, TestRunner } from "vitest";

const urls = new Map<string, Promise<string>>();
const told = new Set<string>();

export function serviceUrl(kind: "postgres" | "redis" | "browser" | "pooler"): Promise<string> {
  const url = urls.get(kind) ?? request(kind);
  urls.set(kind, url);
  return url;
}

async function request(kind: string): Promise<string> {
  const response = await fetch(`${inject("services")}/${kind}`);
  const text = await response.text();
  if (response.status === 503 && kind === "redis") skipThis(text);
  if (!response.ok) throw new Error(text);
  return text;
}

/** Skips the test that runs now: a machine without a Redis runs the others. Postgres is everywhere, since npm brings it. */
export function skipThis(why: string): void {
  if (!told.has(why)) process.stderr.write(`Tests are skipped. ${why}\n`);
  told.add(why);
  TestRunner.getCurrentTest()?.context.skip(why);
}
