import { once } from "node:events";
import { type Command, InvalidArgumentError, Option } from "commander";
import { faultNames } from "../../local/standin/faults.ts";
import { type StandinOptions, startStandin } from "../../local/standin/server.ts";
import { DEFAULT_SETTINGS, type Settings, settingsSchema } from "../../local/standin/settings.ts";
import { unavailable } from "../../service/http/server.ts";
import { wholeNumber } from "../session/options.ts";
import { inSession, type Session } from "../session/session.ts";

type StandinFlags = Omit<StandinOptions, "omitZero" | "faults"> & {
  readonly seed: number;
  readonly sendZero?: boolean;
  readonly fault?: Record<string, number>;
};

type ChosenSetting = {
  [S in keyof Settings]: (typeof settingsSchema.shape)[S] extends { options: string[] } ? S : never;
}[keyof Settings];

export const examples = [
  ["standin --port 8080 --seed 7", "another organization with its own history"],
  [
    "standin --contract day-granular --sandboxes on --evaluators on --tags on",
    "a server that counts the whole bill, with tags for owners",
  ],
  ["standin --organization-scoped --no-listing", "a server that lists no workspaces"],
] as const;

export function define(command: Command): void {
  command
    .option("--port <n>", "port", wholeNumber(65_535), 8080)
    .option("--host <address>", "address to listen on", "127.0.0.1")
    .option("--seed <n>", "seed of the organization and its history", wholeNumber(Number.MAX_SAFE_INTEGER), 1)
    .option("--scale <n>", "multiplier for projects, users and keys", wholeNumber(1000), 1)
    .addOption(chosen("--contract <contract>", "which kind of server to imitate"))
    .addOption(chosen("--align <where>", "start 7-, 30- and 365-day buckets at the window or the epoch"))
    .addOption(
      chosen(
        "--unknown-parameters <what>",
        "what to do with a query parameter that the contract does not have",
      ),
    )
    .addOption(chosen("--deployment-usage <how>", "answer it, have none of it, or refuse it (day-granular)"))
    .addOption(chosen("--sandboxes <how>", "answer costs of sandboxes, or not have them"))
    .addOption(chosen("--evaluators <how>", "answer the spend of evaluators, or not have it"))
    .addOption(chosen("--tags <how>", "answer tags of resources, or refuse them as on smaller plans"))
    .addOption(chosen("--other-measures <how>", "measures of the other kind: 0, or left out (day-granular)"))
    .option("--deployment-start <date>", "first day of deployment usage (default: 2025-12-01)", firstDay)
    .option(
      "--server-version <version>",
      "what /info says; no long-lived usage from 0.16.0 on",
      DEFAULT_SETTINGS.serverVersion,
    )
    .addOption(chosen("--hosting <where>", "a cloud server has long-lived usage in any version"))
    .option("--organization-scoped", "the key belongs to no workspace: control-plane requests name one")
    .addOption(chosen("--a2a <which>", "A2A as the specification has it, or as newer servers speak it"))
    .option("--no-templates", "do not serve sandbox templates, as servers with snapshots")
    .option("--no-listing", "do not serve /workspaces, /orgs/current and /info")
    .option("--refuse-future", "refuse an end_time in the future")
    .option("--send-zero", "send buckets without usage as 0 instead of omitting them")
    .option(
      "--fault <name=share...>",
      `share of requests that fail, or of traces (meter-...): ${faultNames.join(", ")}`,
      faultShare,
    )
    .action(inSession(run, { alone: true }));
}

/** An option for the setting of its name: one of its values, and its default. */
function chosen(flags: string, about: string): Option {
  const option = new Option(flags, about);
  const name = option.attributeName() as ChosenSetting;
  return option.choices(settingsSchema.shape[name].options).default(DEFAULT_SETTINGS[name]);
}

async function run({ output, signal, onClose }: Session, flags: StandinFlags): Promise<undefined> {
  const { fault, sendZero, ...options } = flags;
  const { host, port } = options;
  const { url, apiKey, close } = await startStandin({
    ...options,
    omitZero: sendZero !== true,
    ...(fault && { faults: { seed: flags.seed, rates: fault } }),
  }).catch((cause) => {
    if (cause?.syscall !== "listen" && cause?.syscall !== "getaddrinfo") throw cause;
    const next = "Choose another address with --host and --port; --port 0 takes any free one.";
    throw unavailable({ what: "The stand-in", address: `${host}:${port}`, next }, cause);
  });
  onClose(close);
  output.data({ url, apiKey }, () =>
    [
      `The stand-in listens on ${url}. Ctrl-C stops it. To load from it, set:`,
      `  export USAGE_BASE_URL=${url} USAGE_API_KEY=${apiKey}`,
      `  export USAGE_CONTROL_PLANE_URL=${url} USAGE_DEPLOYMENT_URL=${url}`,
    ].join("\n"),
  );
  if (!signal.aborted) await once(signal, "abort");
}

function firstDay(text: string): string {
  if (/^\d{4}-\d{2}-\d{2}$/.test(text) && !Number.isNaN(Date.parse(text))) return text;
  throw new InvalidArgumentError("It is not a date such as 2026-01-05.");
}

function faultShare(text: string, before: Record<string, number> | undefined): Record<string, number> {
  const [name = "", share = ""] = text.split("=");
  const value = Number(share);
  if (!(faultNames as readonly string[]).includes(name) || !(value > 0 && value <= 1)) {
    throw new InvalidArgumentError(
      `It is not one of ${faultNames.join(", ")} with a share, such as 500=0.1.`,
    );
  }
  return { ...before, [name]: value };
}
