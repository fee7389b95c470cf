import { type StandinOptions, startStandin } from "../../src/local/standin/server.ts";

/**
 * The platform under test: the one that USAGE_CONTRACT_BASE_URL and USAGE_CONTRACT_API_KEY name, or else the stand-in.
 * The suite only reads. A platform without a listing needs USAGE_CONTRACT_WORKSPACE_IDS, comma-separated.
 */
export interface Platform {
  readonly url: string;
  readonly apiKey: string;
  /** UTC midnight, epoch ms: usage before it is old enough not to change while the suite runs. */
  readonly final: number;
  readonly workspaces: readonly string[];
  close(): Promise<void>;
}

const DAY = 86_400_000;
const FINAL_AFTER = 10 * DAY;

/** Contract and options are those of the stand-in. */
export async function platform(
  contract?: "tiered" | "day-granular",
  options: StandinOptions = {},
): Promise<Platform> {
  const { USAGE_CONTRACT_BASE_URL: url, USAGE_CONTRACT_API_KEY: apiKey } = process.env;
  if (url === undefined || url === "") {
    const now = Date.parse("2026-11-18T09:41:00Z");
    const standin = await startStandin({ now: () => now, ...(contract && { contract }), ...options });
    return withWorkspaces({ url: standin.url, apiKey: standin.apiKey, now, close: standin.close });
  }
  if (apiKey === undefined)
    throw new Error("USAGE_CONTRACT_BASE_URL is set: set USAGE_CONTRACT_API_KEY as well");
  return withWorkspaces({ url: url.replace(/\/$/, ""), apiKey, now: Date.now(), close: async () => {} });
}

interface Reached {
  url: string;
  apiKey: string;
  now: number;
  close(): Promise<void>;
}

async function withWorkspaces({ url, apiKey, now, close }: Reached): Promise<Platform> {
  const given = process.env.USAGE_CONTRACT_WORKSPACE_IDS?.split(",").filter(Boolean) ?? [];
  const workspaces = given.length > 0 ? given : await listed(url, apiKey);
  if (workspaces.length === 0)
    throw new Error(`${url} lists no workspaces: set USAGE_CONTRACT_WORKSPACE_IDS`);
  return { url, apiKey, workspaces, close, final: Math.floor((now - FINAL_AFTER) / DAY) * DAY };
}

async function listed(url: string, apiKey: string): Promise<string[]> {
  const response = await fetch(`${url}/api/v1/workspaces`, { headers: { "x-api-key": apiKey } });
  if (!response.ok) return [];
  return ((await response.json()) as { id: string }[]).map(({ id }) => id);
}
