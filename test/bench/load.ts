import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { Command, InvalidArgumentError } from "commander";
import { createOutput } from "../../src/cli/report/output.ts";
import { startChild } from "./child.ts";
import { openDatabases } from "./databases.ts";
import { FLOORS, findFloorClient } from "./floor.ts";
import { measureRound, type Round } from "./measure.ts";
import { hand } from "./measures.ts";
import { describe, type Line, measuresOf, summarise } from "./report.ts";
import { NODE_OPTIONS } from "./scale-process.ts";
import type { ServerAnswer, ServerTask } from "./server.ts";
import { shapes } from "./shapes.ts";

/**
 * `npm run bench`: records per second from HTTP to committed, and peak memory, beside a floor of psql in the same run.
 * The platform, Postgres and the floor are processes of their own; all share the cores of this machine.
 */

interface Options {
  readonly records: number;
  readonly tasks: number;
  readonly rounds: number;
  readonly shape?: string[];
  readonly gzip?: boolean;
  readonly nodeOption: string[];
  readonly json?: boolean;
}

const count = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError("It is not a whole number.");
  return value;
};
const options = new Command("bench")
  .description("HTTP to committed, beside a floor measured in the same run")
  .option("--records <n>", "records of the large shapes", count, 1_000_000)
  .option("--tasks <n>", "answers of the small shape", count, 500)
  .option("--rounds <n>", "rounds; medians are shown", count, 3)
  .option("--shape <name...>", "only these: windows, one, small")
  .option("--gzip", "the platform compresses its answers")
  // As the program starts.
  .option("--node-option <option...>", "for the measured process, such as --cpu-prof", [...NODE_OPTIONS])
  .option("--json", "one JSON document on stdout")
  .parse()
  .opts<Options>();

const output = createOutput({ json: options.json ?? false });
const folder = mkdtempSync(join(tmpdir(), "usage-etl-bench-"));
const databases = await openDatabases();
try {
  const client = await findFloorClient();
  if (!client.name.startsWith("psql")) output.note("psql is not on PATH: the floors COPY from Node instead.");
  const lines: Line[] = [];
  const all: { shape: string; rounds: Round[] }[] = [];
  for (const shape of shapes(options.records, options.tasks)) {
    if (options.shape !== undefined && !options.shape.includes(shape.name)) continue;
    output.note(`${shape.name}: ${shape.about}`);
    const server = await startChild<ServerAnswer>("./server.ts", {
      shape,
      gzip: options.gzip ?? false,
    } satisfies ServerTask);
    try {
      const floors = FLOORS.filter(() => shape.name !== "small").map((floor, i) => ({
        floor,
        file: join(folder, `${shape.name}.${i}.copy`),
      }));
      for (const { floor, file } of floors) await floor.writeRows(shape, file);
      const rounds: Round[] = [];
      for (let round = 0; round < options.rounds; round++) {
        rounds.push(
          ...(await measureRound({
            databases,
            shape,
            platformUrl: server.answer.url,
            floors,
            runFloor: client.run,
            nodeOptions: options.nodeOption,
            loadFirst: round % 2 === 1,
          })),
        );
      }
      lines.push(...summarise(shape, rounds));
      all.push({ shape: shape.name, rounds });
      hand(measuresOf(shape, rounds));
    } finally {
      await server.close();
    }
  }
  const machine = {
    node: process.version,
    postgres: databases.version,
    settings: databases.settings,
    cores: availableParallelism(),
    floors: client.name,
    gzip: options.gzip ?? false,
    rounds: options.rounds,
  };
  output.data({ machine, lines, rounds: all }, () =>
    [
      describe(lines),
      "",
      `Medians of ${machine.rounds} rounds, interleaved. Node ${machine.node}, ${machine.postgres} (${machine.settings}), ${machine.cores} cores shared by all.`,
      `Floors: ${machine.floors} + MERGE, one transaction, into the same table; "x" is our time over theirs.`,
      ...FLOORS.map(({ name, about }) => `  ${name}: ${about}.`),
    ].join("\n"),
  );
} finally {
  await databases.close();
  rmSync(folder, { recursive: true, force: true });
}
