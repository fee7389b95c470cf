import { afterAll, expect } from "vitest";
import { type Ended, usageEtl, type Where } from "./cli.ts";
import { type Bench, setup } from "./source.ts";

export const KEY = "lsv2_sk_9f8e7d6c5b4a32100123";
export const PASSWORD = "hunter2-of-nobody";
export const outputs: Ended[] = [];
const passwords = new Set([PASSWORD]);

export async function run(
  args: readonly string[],
  env: Record<string, string> = {},
  where?: Where,
): Promise<Ended> {
  const ended = await usageEtl(args, env, where);
  outputs.push(ended);
  return ended;
}

export async function bench(options: Parameters<typeof setup>[0] = {}): Promise<Bench> {
  const made = await setup({ workspaces: [0, 1], ...options, standin: { apiKey: KEY, ...options.standin } });
  passwords.add(decodeURIComponent(new URL(made.databaseUrl).password));
  return made;
}

export function envOf({ databaseUrl, standin, dataStart, workspaceIds }: Bench): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    USAGE_BASE_URL: standin.url,
    USAGE_API_KEY: standin.apiKey,
    USAGE_WORKSPACE_IDS: workspaceIds.join(","),
    USAGE_DATA_START: dayOf(dataStart),
    USAGE_HOURLY_FOR: "PT24H",
    USAGE_RATE_LIMIT: "1000",
  };
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}

export function document({ stdout }: Ended): unknown {
  expect(stdout).toMatch(/^[[{].*\n$/s);
  return JSON.parse(stdout);
}

afterAll(() => {
  for (const { stdout, stderr } of outputs) {
    for (const secret of [KEY, ...passwords]) {
      if (secret !== "") expect(stdout + stderr).not.toContain(secret);
    }
    expect(stdout + stderr).not.toContain("\u001b");
  }
});
