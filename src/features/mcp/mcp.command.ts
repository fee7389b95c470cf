import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Command } from "commander";
import { requireDatabaseUrl } from "../../core/base/config.ts";
import { envFileOf } from "../../core/base/env-file.ts";
import { createLogger } from "../../core/base/log.ts";
import { ROOT } from "../../core/base/root.ts";
import { checkReachable, openStore } from "../../core/store/db/database.ts";
import { inSession, requireSchema, type Session } from "../../terminal/session.ts";
import { PAGES_POOL } from "../../web/routes.ts";
import { mcpServer } from "./server.ts";

export const examples = [
  ["mcp", "for a client on this machine, which starts it and speaks to it over stdin and stdout"],
  ["mcp --masked", "the same without e-mail addresses of users"],
  ["mcp --print-config", "what to add to the file of servers of a client"],
] as const;

export function define(command: Command): void {
  command
    .option("--masked", "name users by their id, in place of their e-mail address")
    .option("--print-config", "print the entry for a client's file of servers, and end")
    .action(inSession(run));
}

interface Options {
  readonly masked?: boolean;
  readonly printConfig?: boolean;
}

/** Stdout is the protocol's: nothing else may be written there. */
async function run(session: Session, { masked = false, printConfig }: Options): Promise<undefined> {
  const { config, signal, output, onClose } = session;
  if (printConfig) return output.data(clientConfig(masked), (entry) => JSON.stringify(entry, null, 2));
  const log = createLogger(config.logLevel, "stderr");
  const store = openStore({ url: requireDatabaseUrl(config), ...PAGES_POOL });
  onClose(() => store.close());
  await checkReachable(store);
  await requireSchema(store);
  const onerror = (error: Error) => log.warn({ code: "mcp_message", reason: error.message }, "mcp");
  const ended = new Promise<void>((end) => {
    process.stdin.once("close", end).once("end", end);
    signal.addEventListener("abort", () => end(), { once: true });
  });
  const reader = masked ? "usage_reader_masked" : "usage_reader";
  const from = { config, store, db: store.db, reader } as const;
  const served = serveStdio(() => mcpServer(from, log), { onerror, maxSubscriptions: 0 });
  // A person who types the command should not wait for a response.
  if (process.stdin.isTTY)
    output.note("An AI client starts this command, and asks it over stdin. Ctrl-C ends it.");
  if (!signal.aborted) await ended;
  await served.close();
  // An open stdin would keep the process.
  process.stdin.destroy();
}

/** With absolute paths: a client starts the program in any folder, where `npx` would request its name from the registry. */
function clientConfig(masked: boolean) {
  const args = [fileURLToPath(new URL("src/cli.js", ROOT)), "mcp", ...(masked ? ["--masked"] : [])];
  return { mcpServers: { "usage-etl": { command: process.execPath, args, env: clientEnvironment() } } };
}

/** Empty for a running demo. A password is not printed. */
function clientEnvironment(): Record<string, string> {
  const file = envFileOf(process.env);
  if (file !== undefined) return { USAGE_ENV_FILE: resolve(file) };
  const { DATABASE_URL: url, DATABASE_URL_FILE: urlFile } = process.env;
  if (urlFile) return { DATABASE_URL_FILE: resolve(urlFile) };
  return url ? { DATABASE_URL: "postgres://user:password@host:5432/usage" } : {};
}
