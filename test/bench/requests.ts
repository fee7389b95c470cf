import { Command } from "commander";
import { DAY_MS, HOUR_MS } from "../../src/core/domain/time/stride.ts";
import { GROUPINGS } from "../../src/core/domain/usage/record.ts";
import { EXIT } from "../../src/terminal/exit.ts";
import { createOutput, table } from "../../src/terminal/output.ts";
import { now } from "../support/clock.ts";
import { openDatabases, storedTraces, whole } from "./harness.ts";
import { QUARTER_MS, startPlatform } from "./platform.ts";
import { type Environment, runCommand } from "./processes.ts";

/**
 * `npm run bench:requests`: how many requests a first load and the syncs after it send, and how many they plan. Real commands on a real
 * Postgres; the platform counts what it is asked. Between two syncs some of the workspaces have new traces.
 */

interface Options {
  readonly workspaces: number;
  readonly used: number;
  readonly active: number[];
  readonly days: number;
  readonly hours: number;
}

const options = new Command("bench:requests")
  .description("requests that are planned, and sent")
  .option("--workspaces <n>", "workspaces", whole, 1000)
  .option("--used <n>", "of them, so many ever had traces", whole, 300)
  .option("--active <n...>", "so many have new traces before a sync", (text, all: number[] = []) => [
    ...all,
    Number(text),
  ])
  .option("--days <n>", "days of history", whole, 5)
  .option("--hours <n>", "days of which hours are kept", whole, 3)
  .parse()
  .opts<Options>();
const { workspaces, used, days, hours, active = [0, 50, 300] } = options;

const output = createOutput({ json: false });
const from = Math.floor(now() / DAY_MS - days) * DAY_MS;
const platform = await startPlatform({ workspaces, active: 0, from, seed: 1 });
platform.pass(now() + QUARTER_MS);
for (let at = from; at < now() - HOUR_MS; at += HOUR_MS)
  for (let place = 0; place < used; place++) platform.add(place, at, place % 3, (place % 5) + 1);
const databases = await openDatabases();
const url = await databases.create();
const environment: Environment = {
  DATABASE_URL: url,
  USAGE_BASE_URL: platform.url,
  USAGE_API_KEY: "bench-key",
  USAGE_DATA_START: new Date(from).toISOString().slice(0, 10),
  USAGE_HOURLY_FOR: `P${hours}D`,
  USAGE_METERS: "traces",
  USAGE_RATE_LIMIT: "1000000",
};

try {
  const lines: (string | number)[][] = [];
  const sync = async (what: string, changed: number) => {
    output.note(what);
    platform.pass(now() + QUARTER_MS);
    for (let place = used - changed; place < used; place++) platform.add(place, now(), 0, 1);
    platform.requests.clear();
    const { exit, ms, out } = await runCommand(environment, ["sync", "--inline", "--json"]);
    if (exit !== EXIT.done && exit !== EXIT.partlyFailed) throw new Error(`sync ended with ${exit}`);
    const [stored, truth] = [await storedTraces(url), platform.total()];
    if (stored.some((one) => one !== truth)) throw new Error(`stored ${stored.join(", ")}, not ${truth}`);
    const of = GROUPINGS.map((by) => platform.requests.get(by) ?? 0);
    const [{ counts }] = JSON.parse(out) as [{ counts: { planned: number }[] }];
    const planned = counts.reduce((sum, one) => sum + one.planned, 0);
    lines.push([what, planned, ...of, of.reduce((sum, one) => sum + one, 0), (ms / 1000).toFixed(0)]);
  };
  await sync("first load", 0);
  for (const n of active) await sync(`sync, ${n} workspaces with new traces`, n);
  process.stdout.write(
    `Requests planned, and sent by dimension\n${table(["", "planned", "workspace", "project", "user", "API key", "sent", "s"], lines)}\n\n${workspaces} workspaces, of which ${used} ever had traces; ${days} days, hours of ${hours} days. ${databases.machine}\n`,
  );
} finally {
  await platform.close();
  await databases.drop(url);
  await databases.close();
}
