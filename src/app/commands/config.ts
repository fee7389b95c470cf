import { existsSync } from "node:fs";
import type { Command } from "commander";
import type { z } from "zod";
import { type Config, readConfig } from "../../core/base/config.ts";
import { printableLine } from "../../core/base/printable.ts";
import { describeRedis, redisServerOf } from "../../core/base/redis-server.ts";
import type { Secret } from "../../core/base/secret.ts";
import { SETTINGS, type Setting } from "../../core/base/settings.ts";
import { shownUrl } from "../../core/base/url.ts";
import { type Environment, readVariable, type SettingName } from "../../core/base/variables.ts";
import { createOutput, type OutputOptions, table, wrapped } from "../../terminal/output.ts";
import { commandEnvironment } from "../../terminal/running-demo.ts";

export const examples = [
  ["config", "what is set, and what is a default"],
  ["config --json", "the same for a script"],
] as const;

export function define(command: Command): void {
  command.action((_: object, self: Command) => show(createOutput(self.optsWithGlobals<OutputOptions>())));
}

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

const WIDTHS = { setting: 23, value: 42 } as const;
const IN_PARTS = /.{1,42}/gu;

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
      const [first = "", ...more] = printableLine(value ?? "-").match(IN_PARTS) ?? [];
      return [
        lineOf(setting, first, from),
        ...more.map((part) => lineOf("", part, "")),
        wrapped("    ", meaning),
      ];
    }),
    ...(rows.length === 0 ? [] : [`\nSources of ${file}:`, table(head, rows)]),
  ].join("\n");
}

function lineOf(setting: string, value: string, from: string): string {
  return `${setting.padEnd(WIDTHS.setting)}  ${value.padEnd(WIDTHS.value)}  ${from}`.trimEnd();
}

interface DescribedSetting {
  readonly setting: SettingName;
  /** Secrets are hidden. Null: not set, and there is no default. */
  readonly value: string | null;
  /** `file`: the file that holds a secret. */
  readonly from: "environment" | "env file" | "file" | "default" | "unset";
  readonly meaning: string;
}

const HIDDEN = "[redacted]";
/** Shown instead of an invalid value, which may be a misplaced secret. */
const NOT_VALID = "(not valid)";

/** Never throws. `own` is the environment without the env file. */
export function describeConfig(environment: Environment, own = environment): DescribedSetting[] {
  return (Object.entries(SETTINGS) as [SettingName, Setting][]).map(
    ([setting, { schema, about, secret }]) => {
      const given = (name: string, of = environment) => of[name]?.trim() || undefined;
      const [text, file] = [given(setting), secret ? given(`${setting}_FILE`) : undefined];
      const problems: string[] = [];
      const parsed = readVariable(environment, setting, problems);
      if (text === undefined && file === undefined) {
        const value = defaultOf(schema) ?? null;
        return { setting, value, from: value === null ? "unset" : "default", meaning: about };
      }
      const isOwn = given(setting, own) !== undefined;
      const from = text === undefined ? "file" : isOwn ? "environment" : "env file";
      // The file's content, set instead of its path, must not show keys.
      const isNoPath = setting === "USAGE_SOURCES_FILE" && !existsSync(text ?? "");
      if (problems.length > 0 || isNoPath) return { setting, value: NOT_VALID, from, meaning: about };
      const value = secret ? withoutSecret((parsed as Secret).reveal(), setting) : (text ?? null);
      return { setting, value, from, meaning: about };
    },
  );
}

/** The path of a webhook is hidden, because it is its password. */
function withoutSecret(value: string, setting: SettingName): string {
  if (!setting.endsWith("_URL")) return HIDDEN;
  const redis = setting === "REDIS_URL" ? redisServerOf({ url: value }) : undefined;
  if (redis !== undefined && redis.kind !== "single") return describeRedis(redis);
  if (setting === "USAGE_ALERT_WEBHOOK_URL") return `${new URL(value).origin}/${HIDDEN}`;
  return shownUrl(value);
}

/** The default as a person would write it, such as `P45D`. Undefined: no default, or an empty one. */
function defaultOf(schema: z.ZodType): string | undefined {
  const def = schema.def as { defaultValue?: unknown; innerType?: z.ZodType; in?: z.ZodType };
  if (def.defaultValue !== undefined) return String(def.defaultValue) || undefined;
  const inner = def.innerType ?? def.in;
  return inner === undefined ? undefined : defaultOf(inner);
}
