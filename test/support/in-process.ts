import { main } from "../../src/cli/program.ts";
import type { Ended } from "./cli.ts";

/** Runs the program in this process, with this environment alone: most commands take less time than a start of Node. */
export async function runHere(
  args: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): Promise<Ended> {
  const { argv, exitCode, env, stdout, stderr } = process;
  const written = [stdout, stderr].map((stream) => {
    const { write } = stream;
    const pieces: string[] = [];
    stream.write = (piece) => pieces.push(String(piece)) > 0;
    return { text: () => pieces.join(""), restore: () => Object.assign(stream, { write }) };
  });
  process.argv = [argv[0] ?? "", "usage-etl", ...args];
  process.env = { USAGE_ENV_FILE: "/dev/null", NO_COLOR: "1", ...environment };
  process.exitCode = undefined;
  try {
    await main();
    const [said = "", told = ""] = written.map(({ text }) => text());
    return { code: Number(process.exitCode ?? 0), stdout: said, stderr: told };
  } finally {
    for (const { restore } of written) restore();
    Object.assign(process, { argv, exitCode, env });
  }
}
