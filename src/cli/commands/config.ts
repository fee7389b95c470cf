import type { Command } from "commander";
import { type Config, readConfig } from "../../config/config.ts";
import { type DescribedSetting, describeConfig } from "../../config/describe.ts";
import { printableLine } from "../../printable.ts";
import { createOutput, table } from "../report/output.ts";
import { commandEnvironment } from "../session/running-demo.ts";

export function define(command: Command): void {
  command.action((_: object, self: Command) =>
    show(createOutput({ json: self.optsWithGlobals().json ?? false })),
  );
}

/** Shows the settings even if some are refused: the error that lists those comes after them. */
async function show(output: ReturnType<typeof createOutput>): Promise<void> {
  let environment = process.env;
  let config: Config | undefined;
  let refused: unknown;
  try {
    const found = await commandEnvironment(process.env);
    if (found.note !== undefined) output.note(found.note);
    environment = { ...found.environment };
    config = readConfig(environment);
  } catch (error) {
    refused = error;
  }
  const settings = describeConfig(environment, process.env);
  output.data({ ...config, settings }, () => describe(settings, config));
  if (refused !== undefined) throw refused;
}

/** Together with the gaps a line of 80 columns. */
const WIDTHS = { setting: 23, value: 42, from: 11 } as const;

function describe(settings: readonly DescribedSetting[], config: Config | undefined): string {
  const file = settings.find((one) => one.setting === "USAGE_SOURCES_FILE")?.value;
  const sources = file == null ? [] : (config?.sources ?? []);
  const rows = sources.map((one) => [
    ...[one.slug, one.baseUrl, one.workspaceIds.length === 0 ? "all listed" : one.workspaceIds.length],
    ...[one.dataStart, one.rateLimit],
  ]);
  const head = ["source", "base URL", "workspaces", "data start", "requests per 10 s"];
  return [
    lineOf("setting", "value", "from"),
    ...settings.flatMap(({ setting, value, from, meaning }) => {
      const [first = "", ...more] = cut(printableLine(value ?? "-"), WIDTHS.value);
      return [
        lineOf(setting, first, from),
        ...more.map((part) => lineOf("", part, "")),
        ...indented(meaning),
      ];
    }),
    ...(rows.length === 0 ? [] : [`\nSources of ${file}:`, table(head, rows)]),
  ].join("\n");
}

function lineOf(setting: string, value: string, from: string): string {
  return `${setting.padEnd(WIDTHS.setting)}  ${value.padEnd(WIDTHS.value)}  ${from}`.trimEnd();
}

function cut(text: string, width: number): string[] {
  return Array.from({ length: Math.ceil(text.length / width) }, (_, i) =>
    text.slice(i * width, (i + 1) * width),
  );
}

/** What a setting means, in lines of whole words. */
function indented(text: string): string[] {
  return (text.match(/.{1,76}(?= |$)/g) ?? []).map((line) => `    ${line.trim()}`);
}
