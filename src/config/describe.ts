import { existsSync } from "node:fs";
import type { z } from "zod";
import { describeRedis, redisServerOf } from "../redis-server.ts";
import { SETTINGS, type Setting } from "./settings.ts";
import { type Environment, readVariable, type SettingName } from "./variables.ts";

export interface DescribedSetting {
  readonly setting: SettingName;
  /** As it was given, without secrets; null where it is not set and has no default. */
  readonly value: string | null;
  /** `file`: the file of a secret. */
  readonly from: "environment" | "env file" | "file" | "default" | "unset";
  readonly meaning: string;
}

const HIDDEN = "[redacted]";
/** A value that is refused may be a secret in the wrong place. */
const NOT_VALID = "(not valid)";

/**
 * Every setting with its value as it was given and where that comes from. Does not throw, whatever is set. `own` is the
 * environment without the env file.
 */
export function describeConfig(environment: Environment, own = environment): DescribedSetting[] {
  return (Object.entries(SETTINGS) as [SettingName, Setting][]).map(
    ([setting, { schema, about, secret }]) => {
      const problems: string[] = [];
      const parsed = readVariable(environment, setting, problems);
      const given = (name: string) => environment[name]?.trim() || undefined;
      const [text, file] = [given(setting), secret ? given(`${setting}_FILE`) : undefined];
      const byDefault = defaultOf(schema);
      const from =
        text !== undefined
          ? own[setting]?.trim()
            ? "environment"
            : "env file"
          : file !== undefined
            ? "file"
            : byDefault === undefined
              ? "unset"
              : "default";
      const shown = () => {
        if (from === "unset") return null;
        if (from === "default") return byDefault ?? null;
        if (problems.length > 0) return NOT_VALID;
        if (secret) return withoutSecret(String((parsed as { reveal(): string }).reveal()), setting);
        // Who pastes the file's content in place of its path must not find the keys on the screen.
        if (setting === "USAGE_SOURCES_FILE" && !existsSync(text ?? "")) return NOT_VALID;
        return text ?? null;
      };
      return { setting, value: shown(), from, meaning: about };
    },
  );
}

/** Where a server is may be seen; the path of a webhook is its password. */
function withoutSecret(value: string, setting: SettingName): string {
  if (setting === "REDIS_URL" && value.includes(",")) return describeRedis(redisServerOf({ url: value }));
  if (!URL.canParse(value)) return HIDDEN;
  const { protocol, username, password, host, pathname } = new URL(value);
  if (host === "" || setting === "USAGE_API_KEY" || setting === "USAGE_BEARER_TOKEN") return HIDDEN;
  if (setting !== "REDIS_URL" && setting.startsWith("REDIS_")) return HIDDEN;
  if (setting === "USAGE_ALERT_WEBHOOK_URL") return `${protocol}//${host}/${HIDDEN}`;
  // A user without a password may be a password in the wrong place.
  const user = password !== "" ? `${username}:${HIDDEN}@` : username !== "" ? `${HIDDEN}@` : "";
  return `${protocol}//${user}${host}${pathname}`;
}

/** The default as it would be given, such as `P45D`; undefined where there is none, or an empty one. */
function defaultOf(schema: z.ZodType): string | undefined {
  const {
    defaultValue,
    innerType,
    in: input,
  } = schema.def as {
    defaultValue?: unknown;
    innerType?: z.ZodType;
    in?: z.ZodType;
  };
  if (defaultValue !== undefined) return String(defaultValue) || undefined;
  const inner = innerType ?? input;
  return inner === undefined ? undefined : defaultOf(inner);
}
