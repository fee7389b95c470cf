import { serveStdio } from "@modelcontextprotocol/server/stdio";
import type { Command } from "commander";
import { requireDatabaseUrl } from "../../core/base/config.ts";
import { createLogger } from "../../core/base/log.ts";
import { checkReachable, openStore } from "../../core/store/db/database.ts";
import { inSession, requireSchema, type Session } from "../../terminal/session.ts";
import { PAGES_POOL } from "../../web/routes.ts";
import { mcpServer } from "./server.ts";

export const examples = [
  ["mcp", "for a client on this machine, which starts it and speaks to it over stdin and stdout"],
  ["mcp --masked", "the same without e-mail addresses of users"],
] as const;

export function define(command: Command): void {
  command
    .option("--masked", "name users by their id, in place of their e-mail address")
    .action(inSession(run));
}

/** Stdout is the protocol's: nothing else may be written there. */
async function run(session: Session, { masked = false }: { masked?: boolean }): Promise<undefined> {
  const { config, signal, output, onClose } = session;
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
