import { inject, TestRunner } from "vitest";

const urls = new Map<string, Promise<string>>();

/** URL of the run's Postgres, Redis or browser, which the first to ask starts (global-setup.ts). */
export function serviceUrl(kind: "postgres" | "redis" | "browser" | "pooler"): Promise<string> {
  const url = urls.get(kind) ?? ask(kind);
  urls.set(kind, url);
  return url;
}

async function ask(kind: string): Promise<string> {
  const response = await fetch(`${inject("services")}/${kind}`);
  const text = await response.text();
  // A machine without a Redis runs the rest. Postgres is everywhere: npm brings it.
  if (response.status === 503 && kind === "redis") TestRunner.getCurrentTest()?.context.skip(text);
  if (!response.ok) throw new Error(text);
  return text;
}
