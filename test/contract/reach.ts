import { type StandinOptions, startStandin } from "../../src/local/standin/server.ts";

/**
 * The control plane or deployment under test: the one that the environment names, or else the stand-in. On a live
 * platform the suite renames a template there and back, and its runs are billed:
 *
 * - `USAGE_CONTRACT_API_KEY`, and `USAGE_CONTRACT_CONTROL_PLANE_URL` with `USAGE_CONTRACT_TEMPLATE` (a template's name)
 * - and `USAGE_CONTRACT_DEPLOYMENT_URL` with `USAGE_CONTRACT_ASSISTANT` (default agent) and `USAGE_CONTRACT_SLOW_TEXT`
 *   (what makes that assistant take some seconds), and `USAGE_CONTRACT_A2A=live` where a finished task's id is refused
 */
export interface Reach {
  readonly url: string;
  readonly apiKey: string;
  /** Whether it is the stand-in, whose assistant and templates are known. */
  readonly local: boolean;
  close(): Promise<void>;
}

const { env } = process;
const given = (name: string): string | undefined => env[`USAGE_CONTRACT_${name}`] || undefined;

/** On a live platform, what the environment does not name is skipped, not tested on the stand-in. */
const isLive = ["BASE_URL", "CONTROL_PLANE_URL", "DEPLOYMENT_URL"].some((name) => given(name) !== undefined);

export const ASSISTANT = given("ASSISTANT") ?? "agent";
export const TEMPLATE = given("TEMPLATE") ?? "python";
export const SLOW_TEXT = given("SLOW_TEXT") ?? "delay=400 the earlier one";
/** Takes longer than SLOW_TEXT: by then an earlier run that was not stopped would have ended. */
export const SLOWER_TEXT = given("SLOWER_TEXT") ?? "delay=900 the later one";

export const untested = (what: "CONTROL_PLANE_URL" | "DEPLOYMENT_URL"): boolean =>
  isLive && given(what) === undefined;
export const LOCAL = !isLive;

export type A2a = "specified" | "live";
/** The stand-in speaks both. */
export const A2AS: readonly A2a[] = LOCAL
  ? ["specified", "live"]
  : [given("A2A") === "live" ? "live" : "specified"];

export async function reach(
  what: "CONTROL_PLANE_URL" | "DEPLOYMENT_URL",
  options: StandinOptions = {},
): Promise<Reach> {
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
