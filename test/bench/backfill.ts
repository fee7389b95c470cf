import { Command } from "commander";
import { createOutput, table } from "../../src/terminal/output.ts";
import { type Backfilled, backfillRounds, type Round } from "./backfill-rounds.ts";
import { type Company, recordsOf } from "./company.ts";
import { hand, median, whole } from "./harness.ts";
import { CLI } from "./processes.ts";

/**
 * `npm run bench:backfill`: what `usage-etl backfill --inline` takes as a user runs it: a million records of four dimensions, four
 * workspaces and 310 days, in 130 responses. `--cli` measures other checkouts in turn with this one.
 */

const options = new Command("bench:backfill")
  .option("--rounds <n>", "rounds; medians are shown", whole, 5)
  .option("--users <n>", "users of a workspace", whole, 640)
  .option("--windows <n>", "windows of 31 days", whole, 10)
  .option("--cli <path...>", "src/cli.js of other checkouts", [])
  .option("--node-option <option...>", "for the measured process, such as --cpu-prof", [])
  .parse()
  .opts<{ rounds: number; users: number; windows: number; cli: string[]; nodeOption: string[] }>();
const { users, windows } = options;
const company: Company = { workspaces: 4, windows, users, projects: 120, keys: 46 };
const clis = [CLI, ...options.cli];
const output = createOutput({ json: false });
const rounds: (readonly Round[])[] = [];
for await (const round of backfillRounds(company, clis, options.nodeOption)) {
  rounds.push(round);
  output.note(`round ${rounds.length} of ${options.rounds}`);
  if (rounds.length === options.rounds) break;
}
const lines = clis.flatMap((cli, at) =>
  (["empty", "unchanged"] as const).map((target) => {
    const all = rounds.map((round) => (round[at] as Round)[target]);
    const of = (measure: keyof Backfilled) => all.map((one) => one[measure]);
    if (cli === CLI) {
      const seconds = of("cpuMs").map((ms) => ms / 1000);
      hand(`\`backfill --inline\`, 1 million records in 130 responses, ${target}`, "s of CPU", seconds);
      hand(`\`backfill --inline\`, ${target}, peak memory`, "MB", of("peakMb"));
    }
    const times = (["ms", "cpuMs", "postgresMs"] as const).map((name) =>
      (median(of(name)) / 1000).toFixed(2),
    );
    return [
      cli,
      target,
      ...times,
      (Math.min(...of("cpuMs")) / 1000).toFixed(2),
      Math.round(median(of("peakMb"))),
    ];
  }),
);
process.stdout.write(
  `${table(["program", "database", "s", "CPU s of Node", "of Postgres", "least of Node", "peak MB"], lines)}\n\n` +
    `${recordsOf(company)} records. Medians of ${rounds.length} rounds in turn.\n`,
);
