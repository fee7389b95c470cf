import type { FaultName } from "../../../src/features/standin/engine/faults.ts";
import { createAuthority } from "../../support/certificates.ts";
import { now } from "../../support/clock.ts";
import { all, type FaultOf } from "../world/fault.ts";
import type { HostileResponse } from "../world/platform.ts";
import type { World } from "../world/world.ts";

function rates(share: number, ...names: FaultName[]) {
  return async ({ standin, dice }: World) => {
    const each = Object.fromEntries(names.map((name) => [name, share / names.length]));
    standin.faults.set({ seed: dice.below(1_000_000), rates: each });
    return async () => standin.faults.set({ rates: {} });
  };
}

function responses(response: HostileResponse, every: number) {
  return async ({ platform }: World) => {
    platform.hostile = { response, every };
    return async () => {
      platform.hostile = undefined;
    };
  };
}

let authority: ReturnType<typeof createAuthority> | undefined;

export const PLATFORM_FAULTS: readonly FaultOf[] = [
  {
    name: "platform: 429 to everything, with Retry-After: 1",
    how: "60 s, within 45 s, short, random",
    named: ["rate_limited"],
    begin: rates(1, "429-retry-after"),
  },
  {
    name: "platform: 429 without Retry-After",
    how: "20 s, within 45 s, random",
    named: ["rate_limited"],
    begin: rates(1, "429"),
  },
  {
    name: "platform: 429 with a date in Retry-After",
    how: "10 s, within 45 s",
    named: ["rate_limited"],
    begin: async ({ standin }) => {
      const date = new Date(now() + 12_000).toUTCString();
      standin.faults.script({ fault: { kind: "status", status: 429, retry_after: date }, times: 10_000 });
      return async () => standin.faults.clear();
    },
  },
  {
    name: "platform: 429 with a Retry-After that cannot be meant",
    how: "15 s, within 120 s, random",
    named: ["rate_limited"],
    begin: async ({ standin }) => {
      const inTwoDays = new Date(now() + 172_800_000).toUTCString();
      for (const retry_after of [inTwoDays, "soon", "-5", "0", "1e9", "99999999999", ""])
        standin.faults.script({ fault: { kind: "status", status: 429, retry_after }, times: 3 });
      return async () => standin.faults.clear();
    },
  },
  {
    name: "platform: 500, 502 and 503 to everything",
    how: "30 s, within 90 s, random",
    allowed: { failures: true },
    named: ["server_error"],
    begin: rates(1, "500", "502", "503"),
  },
  {
    name: "platform: connections reset",
    how: "30 s, within 90 s, random",
    allowed: { failures: true },
    named: ["network"],
    begin: async (world) => {
      for (const { platform } of all(world)) platform.accepts = "none";
      for (const { platform } of all(world)) platform.cut();
      return async () => {
        for (const { platform } of all(world)) platform.accepts = "all";
      };
    },
  },
  {
    name: "platform: moves, and its old address falls silent",
    how: "1 s, within 180 s, random",
    allowed: { failures: true },
    begin: async (world) => {
      for (const { platform } of all(world)) platform.silence();
      return async () => {};
    },
  },
  {
    name: "platform: its certificate expires",
    how: "30 s, within 120 s",
    allowed: { failures: true },
    named: ["network"],
    options: async () => {
      authority = createAuthority();
      return { authority };
    },
    begin: async (world) => {
      const present = (days: number) => {
        if (authority === undefined) throw new Error("no authority");
        world.platform.present(authority.issue("127.0.0.1", days));
        for (const { platform } of all(world)) platform.cut();
      };
      present(-1);
      return async () => present(2);
    },
  },
  {
    name: "platform: half of the responses are cut, in every framing",
    how: "30 s, within 90 s, random",
    allowed: { failures: true },
    begin: rates(0.5, "cut-length", "cut-chunked", "cut-close", "cut-gzip"),
  },
  {
    name: "platform: answers drip a byte every 2 s",
    how: "30 s, within 180 s",
    allowed: { failures: true },
    begin: responses("drip", 1),
  },
  {
    name: "platform: answers never end",
    how: "20 s, within 120 s",
    allowed: { failures: true },
    options: { environment: { USAGE_RESPONSE_LIMIT: "1" } },
    begin: responses("endless", 1),
  },
  {
    name: "platform: HTML with status 200",
    how: "15 s, within 45 s, random",
    allowed: { failures: true },
    named: ["response_invalid"],
    begin: responses("html", 2),
  },
  {
    name: "platform: empty bodies with status 200",
    how: "15 s, within 90 s, random",
    allowed: { failures: true },
    begin: responses("empty", 2),
  },
  {
    name: "platform: every record doubled",
    how: "15 s, within 45 s",
    allowed: { failures: true },
    // Final days would keep what the platform said, until a reconciliation.
    withoutBackfill: true,
    withoutHistory: true,
    begin: responses("doubled", 2),
  },
  {
    name: "platform: the key loses a workspace",
    how: "30 s, within 60 s, short, random",
    allowed: { failures: true },
    mustHappen: "EXISTS (SELECT FROM usage.fetch WHERE outcome = 'unverified')",
    begin: async ({ standin }) => {
      const [lost] = standin.organisation.workspaces;
      if (lost === undefined) throw new Error("no workspace");
      standin.access.setReadable(lost, false);
      return async () => standin.access.setReadable(lost, true);
    },
  },
];
