import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export type Program = (
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
) => Promise<Ended>;

const PLACES = ["src/app/program.ts", "src/cli/program.ts"];

export async function programOf(tree: string): Promise<Program> {
  const place = PLACES.find((one) => existsSync(join(tree, one)));
  if (place === undefined) throw new Error(`${tree} has none of ${PLACES.join(", ")}.`);
  const { main } = (await import(pathToFileURL(join(tree, place)).href)) as { main: () => Promise<void> };
  return (args, environment) => runMain(main, [...args, "--json"], environment);
}

export async function runMain(
  main: () => Promise<void>,
  args: readonly string[],
  environment: Readonly<Record<string, string>>,
): Promise<Ended> {
  const { argv, exitCode, env, stdout, stderr } = process;
  const streams = [stdout, stderr].map((stream) => {
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
    const [out = "", error = ""] = streams.map(({ text }) => text());
    return { code: Number(process.exitCode ?? 0), stdout: out, stderr: error };
  } finally {
    for (const { restore } of streams) restore();
    Object.assign(process, { argv, exitCode, env });
  }
}

export function steady(text: string): string {
  return text
    .replaceAll(
      /\d{4}-\d\d-\d\d[T ]\d\d:(?!00(:00(\.0+)?)?(Z|\+00)?(?![\d:.]))\d\d(:\d\d(\.\d+)?)?(Z|\+00(:00)?)?/g,
      "INSTANT",
    )
    .replaceAll(/\b1\d{12}\b/g, "INSTANT")
    .replaceAll(/\b\d+(\.\d+)? (ms|s)\b/g, "DURATION")
    .replaceAll(/\bfetch [\d,]+/g, "FETCH")
    .replaceAll(/\/tmp\/usage-etl-[\w-]+/g, "FOLDER")
    .replaceAll(/127\.0\.0\.1:\d+/g, "HOST");
}

function inOrder(value: object): object {
  if (!Array.isArray(value)) return value;
  return value.toSorted((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
}

/** What a command printed and its exit code, one value a line, so that a difference can be read. */
export function asJson({ code, stdout, stderr }: Ended): string {
  const lines = [`exit code = ${code}`];
  const walk = (path: string, value: unknown): void => {
    if (value === null || typeof value !== "object") {
      lines.push(`${path} = ${steady(String(value))}`);
      return;
    }
    for (const [key, inner] of Object.entries(inOrder(value))) walk(`${path}.${key}`, inner);
    if (Object.keys(value).length === 0) lines.push(`${path} = (nothing)`);
  };
  try {
    walk("", JSON.parse(stdout));
  } catch {
    lines.push(...steady(stdout).split("\n"));
  }
  if (code !== 0)
    lines.push(`error = ${[...stderr.matchAll(/"code":"(\w+)"/g)].map(([, found]) => found).join()}`);
  return `${lines.join("\n")}\n`;
}
