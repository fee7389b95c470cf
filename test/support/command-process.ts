export interface CommandTask {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

/** Written to stdout and stderr after each command: the pipes may lag behind the message that it has ended. */
export const END = "\u0000end\u0000";

const [node = "", program = ""] = process.argv;

if (import.meta.main) {
  process.setMaxListeners(0);
  process.stdout.on("error", () => {});
  process.stderr.on("error", () => {});
  process.on("disconnect", () => process.exit());
  process.on("message", ({ args, env }: CommandTask) => void runOne(args, env));
}

async function runOne(args: CommandTask["args"], env: CommandTask["env"]): Promise<void> {
  for (const name of Object.keys(process.env)) delete process.env[name];
  Object.assign(process.env, env);
  process.argv = [node, program, ...args];
  process.exitCode = 0;
  const { main } = await import("../../src/app/program.ts");
  await main();
  process.stdout.write(END);
  process.stderr.write(END);
  process.send?.(process.exitCode);
}
