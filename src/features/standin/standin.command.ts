import { once } from "node:events";
import { type Command, InvalidArgumentError, Option } from "commander";
import { wholeNumber } from "../../terminal/options.ts";
import { inSession, type Session } from "../../terminal/session.ts";
import { unavailable } from "../../web/server.ts";
import { faultNames } from "./engine/faults.ts";
import { type StandinOptions, startStandin } from "./server.ts";

type StandinFlags = Omit<StandinOptions, "faults"> & {
  readonly seed: number;
  readonly fault?: Record<string, number>;
};

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
    .addOption(choice("--contract <contract>", "which kind of server to imitate", ["tiered", "day-granular"]))
    .addOption(choice("--sandboxes <how>", "answer costs of sandboxes, or not have them", ["off", "on"]))
    .addOption(choice("--evaluators <how>", "answer the spend of evaluators, or not have it", ["off", "on"]))
    .addOption(
      choice("--tags <how>", "answer tags of resources, or refuse them as on smaller plans", ["off", "on"]),
    )
    .addOption(
      choice("--a2a <which>", "A2A as the specification has it, or as newer servers speak it", [
        "specified",
        "live",
      ]),
    )
    .option("--organization-scoped", "the key belongs to no workspace: control-plane requests name one")
    .option("--no-templates", "do not serve sandbox templates, as servers with snapshots")
    .option("--no-listing", "do not serve /workspaces, /orgs/current and /info")
    .option("--fault <name=share...>", `share of requests that fail: ${faultNames.join(", ")}`, faultShare)
    .action(inSession(run, { alone: true }));
}

function choice(flags: string, about: string, values: readonly string[]): Option {
  return new Option(flags, about).choices(values).default(values[0]);
}

async function run({ output, signal, onClose }: Session, flags: StandinFlags): Promise<undefined> {
  const { fault, ...options } = flags;
  const { host, port } = options;
  const { url, apiKey, close } = await startStandin({
    ...options,
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

function faultShare(text: string, before: Record<string, number> | undefined): Record<string, number> {
  const [name = "", share = ""] = text.split("=");
  const value = Number(share);
  if (!(faultNames as readonly string[]).includes(name) || !(value > 0 && value <= 1)) {
    throw new InvalidArgumentError(
      `It is not one of ${faultNames.join(", ")} with a share, such as 500=0.1.`,
    );
  }
  const shares = { ...before, [name]: value };
  if (Object.values(shares).reduce((sum, one) => sum + one, 0) <= 1) return shares;
  throw new InvalidArgumentError("The shares add up to more than 1.");
}
