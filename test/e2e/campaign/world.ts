import { dayOf } from "../../../src/core/domain/time/days.ts";
import { DAY_MS } from "../../../src/core/domain/time/stride.ts";
import { type Dice, dice } from "../../../src/features/standin/engine/random.ts";
import { type Ended, usageEtl } from "../../support/cli.ts";
import { startProxy } from "../../support/proxy.ts";
import { type Bench, setReadable, setup } from "../../support/source.ts";

export interface World {
  readonly bench: Bench;
  readonly dice: Dice;
  /** Settings of the next command; a step may move them. */
  readonly env: Record<string, string>;
  /** First day of the month that steps close, epoch milliseconds, and its name. */
  readonly monthStart: number;
  readonly month: string;
  /** `workspace day` whose counts changed upstream after a load may have made them final. */
  readonly restated: Set<string>;
  /** Lets the key lose a workspace after so many usage requests of the next command. */
  loseLater: { after: number; workspace: number } | undefined;
  readonly story: string[];
}

/** Workspaces that the key may lose. The others always respond. */
export const WORKSPACES = 3;

/** All of the month before this one has usage, and the days since. */
export async function makeWorld(seed: number): Promise<World> {
  const now = new Date();
  const monthStart = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - 1, 1);
  const today = Math.floor(now.getTime() / DAY_MS) * DAY_MS;
  const bench = await setup({
    days: (today - monthStart) / DAY_MS,
    workspaces: Array.from({ length: WORKSPACES }, (_, i) => i),
  });
  let left = Number.POSITIVE_INFINITY;
  const proxy = await startProxy(bench.standin.url, ({ url }) => {
    if (url.pathname.includes("granular-usage")) left--;
    if (left <= 0 && world.loseLater !== undefined)
      setReadable(bench.standin, world.loseLater.workspace, false);
    return undefined;
  });
  const world: World = {
    bench,
    dice: dice(seed),
    monthStart,
    month: new Date(monthStart).toISOString().slice(0, 7),
    restated: new Set(),
    story: [],
    env: {
      DATABASE_URL: bench.databaseUrl,
      USAGE_BASE_URL: proxy.url,
      USAGE_API_KEY: bench.standin.apiKey,
      USAGE_WORKSPACE_IDS: bench.workspaceIds.join(","),
      USAGE_DATA_START: dayOf(bench.dataStart),
      USAGE_HOURLY_FOR: "P2D",
      USAGE_RATE_LIMIT: "1000",
    },
    get loseLater() {
      return later;
    },
    set loseLater(next) {
      later = next;
      left = next?.after ?? Number.POSITIVE_INFINITY;
    },
  };
  let later: World["loseLater"];
  return world;
}

export async function command(world: World, ...args: string[]): Promise<Ended & { said: unknown }> {
  const ended = await usageEtl([...args, "--json"], world.env);
  world.loseLater = undefined;
  const said = ended.stdout.trim() === "" ? undefined : JSON.parse(ended.stdout);
  const reason = /"code":"(\w+)"/.exec(ended.stderr)?.[1] ?? "";
  note(world, `${args.join(" ")} -> ${ended.code} ${reason}`);
  return { ...ended, said };
}

export function note({ story }: World, line: string): void {
  story.push(line);
}
