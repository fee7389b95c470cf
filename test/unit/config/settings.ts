import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished } from "vitest";
import { readConfig } from "../../../src/config/config.ts";
import { UsageError } from "../../../src/errors.ts";

export const KEY = "lsv2_sk_do_not_show";
export const ID = "11111111-2222-3333-4444-555555555555";
export const SOURCE = { USAGE_BASE_URL: "https://api.example.com", USAGE_API_KEY: KEY };

/** A file with that content, for a setting that names one. Returns its path. */
export function file(content: string, name = "secret"): string {
  const dir = mkdtempSync(join(tmpdir(), "usage-etl-config-"));
  onTestFinished(() => rmSync(dir, { recursive: true }));
  const path = join(dir, name);
  writeFileSync(path, content);
  return path;
}

/** The problems that an environment is refused with. */
export function problemsOf(environment: Record<string, string>): string[] {
  try {
    readConfig(environment);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    expect(error.code).toBe("configuration_invalid");
    const [head, ...lines] = error.message.split("\n  ");
    expect(head).toBe(`The configuration has ${lines.length} problem${lines.length > 1 ? "s" : ""}:`);
    return lines;
  }
  throw new Error("the environment was accepted");
}
