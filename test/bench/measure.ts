import { startChild } from "./child.ts";
import type { Databases } from "./databases.ts";
import { FLOOR_SETUP, type Floor, type RunFloor } from "./floor.ts";
import type { LoaderAnswer, LoaderTask } from "./loader.ts";
import { recordsOf, type Shape, sumOfTraces } from "./shapes.ts";

export interface Round {
  readonly target: "empty" | "unchanged";
  /** Milliseconds of each floor. */
  readonly floors: Readonly<Partial<Record<Floor["name"], number>>>;
  readonly load: LoaderAnswer;
}

interface Measured {
  readonly databases: Databases;
  readonly shape: Shape;
  readonly platformUrl: string;
  /** Empty where there is nothing to hold the load against. */
  readonly floors: readonly { readonly floor: Floor; readonly file: string }[];
  readonly runFloor: RunFloor;
  readonly nodeOptions: readonly string[];
  /** Who begins changes from round to round. */
  readonly loadFirst: boolean;
}

/** All sides into an empty table, then all again with the same rows; each side in a database of its own. */
export async function measureRound(measured: Measured): Promise<Round[]> {
  const { databases, floors, loadFirst } = measured;
  const urls: string[] = [];
  try {
    for (let i = 0; i < floors.length; i++) urls.push(await databases.create(FLOOR_SETUP));
    urls.push(await databases.create());
    const loadUrl = urls.at(-1) as string;
    const rounds: Round[] = [];
    for (const target of ["empty", "unchanged"] as const) {
      for (const url of urls) await databases.settle(url);
      const early = loadFirst ? await runLoad(measured, loadUrl, target) : undefined;
      const times: Partial<Record<Floor["name"], number>> = {};
      for (const [i, { floor, file }] of floors.entries()) {
        times[floor.name] = await measured.runFloor(floor, urls[i] as string, file);
        await check(measured, urls[i] as string, `floor ${floor.name}`);
      }
      const load = early ?? (await runLoad(measured, loadUrl, target));
      rounds.push({ target, floors: times, load });
    }
    return rounds;
  } finally {
    for (const url of urls) await databases.drop(url);
  }
}

async function runLoad(measured: Measured, url: string, target: Round["target"]): Promise<LoaderAnswer> {
  const { shape, platformUrl, nodeOptions } = measured;
  const task: LoaderTask = { shape, databaseUrl: url, platformUrl };
  const child = await startChild<LoaderAnswer>("./loader.ts", task, nodeOptions);
  await child.close();
  const load = child.answer;
  const done = target === "empty" ? load.inserted : load.unchanged;
  if (done !== recordsOf(shape))
    throw new Error(`${shape.name}, ${target}: ${done} of ${recordsOf(shape)} records`);
  await check(measured, url, target);
  return load;
}

/** A fast load of something else would be no result. */
async function check({ databases, shape }: Measured, url: string, what: string): Promise<void> {
  const { records, traces } = await databases.stored(url);
  const expected = { records: recordsOf(shape), traces: sumOfTraces(shape) };
  if (records === expected.records && traces === expected.traces) return;
  throw new Error(
    `${shape.name}, ${what}: stored ${records} records with ${traces} traces, not ${expected.records} with ${expected.traces}`,
  );
}
