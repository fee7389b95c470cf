import { type StandinOptions, startStandin } from "../../src/features/standin/server.ts";
import { now as currentTime } from "../support/clock.ts";

/**
 * The platform under test: what the environment names, or else the stand-in. On a live platform the suite only reads billing, but it
 * renames a template there and back, and its runs are billed:
 *
 * - `USAGE_CONTRACT_API_KEY`, and `USAGE_CONTRACT_BASE_URL` with `USAGE_CONTRACT_WORKSPACE_IDS` (comma-separated) where it has no
 *   listing
 * - `USAGE_CONTRACT_CONTROL_PLANE_URL` with `USAGE_CONTRACT_TEMPLATE` (a template's name)
 * - and `USAGE_CONTRACT_DEPLOYMENT_URL`, a deployment of the agent in test/tools/agents
 */
export interface Reach {
  readonly url: string;
  readonly apiKey: string;
  readonly local: boolean;
  close(): Promise<void>;
}

type Host = "BASE_URL" | "CONTROL_PLANE_URL" | "DEPLOYMENT_URL";
const HOSTS: readonly Host[] = ["BASE_URL", "CONTROL_PLANE_URL", "DEPLOYMENT_URL"];

const given = (name: string): string | undefined => process.env[`USAGE_CONTRACT_${name}`] || undefined;

export const TEMPLATE = given("TEMPLATE") ?? "python";

export const LOCAL = HOSTS.every((name) => given(name) === undefined);
export const untested = (what: Host): boolean => !LOCAL && given(what) === undefined;

export async function reach(what: Host, options: StandinOptions = {}): Promise<Reach> {
  const url = given(what);
  if (url === undefined) {
    const { url, apiKey, close } = await startStandin(options);
    return { url, apiKey, local: true, close };
  }
  const apiKey = given("API_KEY");
  if (apiKey === undefined)
    throw new Error(`USAGE_CONTRACT_${what} is set: set USAGE_CONTRACT_API_KEY as well`);
  return { url: url.replace(/\/$/, ""), apiKey, local: false, close: async () => {} };
}

export interface Platform extends Reach {
  /** UTC midnight, epoch ms: usage before it is old enough not to change while the suite runs. */
  readonly final: number;
  readonly workspaces: readonly string[];
}

const DAY = 86_400_000;
const FINAL_AFTER = 10 * DAY;
const STANDIN_NOW = Date.parse("2026-11-18T09:41:00Z");

export async function platform(options: StandinOptions = {}): Promise<Platform> {
  const reached = await reach("BASE_URL", { now: () => STANDIN_NOW, ...options });
  const named = given("WORKSPACE_IDS")?.split(",").filter(Boolean) ?? [];
  const workspaces = named.length > 0 ? named : await listed(reached);
  if (workspaces.length === 0)
    throw new Error(`${reached.url} lists no workspaces: set USAGE_CONTRACT_WORKSPACE_IDS`);
  const now = reached.local ? STANDIN_NOW : currentTime();
  return { ...reached, workspaces, final: Math.floor((now - FINAL_AFTER) / DAY) * DAY };
}

async function listed({ url, apiKey }: Reach): Promise<string[]> {
  const response = await fetch(`${url}/api/v1/workspaces`, { headers: { "x-api-key": apiKey } });
  if (!response.ok) return [];
  return ((await response.json()) as { id: string }[]).map(({ id }) => id);
}
