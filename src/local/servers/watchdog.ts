import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import type { Socket } from "node:net";

/**
 * A server that ends with this process, even after SIGKILL.
 *
 * A small shell runs the server and reads a pipe that this process never writes to. When this process ends, the kernel
 * closes the pipe, and the shell stops the server. The shell has a session of its own, so that Ctrl-C reaches this process
 * first. It is not a second Node: a shell costs a megabyte and a millisecond, and `killall node` does not end it.
 */
export interface Watched {
  /** Resolves with the exit code once the server has ended. */
  readonly gone: Promise<number>;
  /** Lets this process end without `stop`. The server then ends with it. */
  unref(): void;
  /** Asks the server to stop and waits for it. */
  stop(): Promise<void>;
}

export interface WatchInput {
  readonly program: string;
  readonly args: readonly string[];
  /** The signal that stops it. It is repeated every second, because it may arrive before the server handles it. */
  readonly signal: "INT" | "TERM";
  /** File for its output. It is truncated first. */
  readonly log: string;
  /** A folder to remove after the server was stopped. */
  readonly remove?: string | undefined;
  /** The user to run as. Without it, the user of this process. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
}

// SIGKILL follows after a minute: both servers keep what was committed. If the server ends by itself, `asked` stays 0 and
// the folder stays for its owner, who may start the server again.
const SCRIPT = `
signal=$1 remove=$2; shift 2
asked=0
trap 'asked=$((asked + 1))' HUP INT TERM
"$@" </dev/null 3<&- &
server=$!
(
  while read -r _ <&3; do :; done
  while kill -TERM $$ 2>/dev/null; do sleep 1; done
) &
watcher=$!
code=0
while kill -0 $server 2>/dev/null; do
  if [ $asked -gt 60 ]; then kill -KILL $server; elif [ $asked -gt 0 ]; then kill -$signal $server; fi
  wait $server; code=$?
done 2>/dev/null
kill $watcher 2>/dev/null
if [ $asked -gt 0 ] && [ -n "$remove" ]; then rm -rf -- "$remove"; fi
exit $code
`;

export function watch(input: WatchInput): Watched {
  const log = openSync(input.log, "w", 0o600);
  const shell = spawn(
    "/bin/sh",
    ["-c", SCRIPT, "watchdog", input.signal, input.remove ?? "", input.program, ...input.args],
    {
      // Not our folder, which the server's user may be unable to enter. Not our environment, whose PGOPTIONS and the like
      // would reach the server. LC_ALL keeps its log in English, because we search it for reasons.
      cwd: "/",
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C", ...clockVariables() },
      stdio: ["ignore", log, log, "pipe"],
      detached: true,
      ...input.user,
    },
  );
  closeSync(log);
  const pipe = shell.stdio[3] as Socket;
  pipe.on("error", () => {});
  const gone = once(shell, "exit").then(([code]) => (typeof code === "number" ? code : 1));
  // Whoever awaits it gets the error. A shell that cannot be spawned must not end this process.
  gone.catch(() => {}).finally(() => pipe.destroy());
  return {
    gone,
    unref: () => {
      shell.unref();
      pipe.unref();
    },
    stop: async () => {
      shell.ref();
      pipe.destroy();
      await gone;
    },
  };
}

/** What moves the clock of this process (`npm run test:clock`). All processes of a test run need the same clock. */
export function clockVariables(): Record<string, string> {
  const { LD_PRELOAD, CLOCK_OFFSET } = process.env;
  return LD_PRELOAD === undefined || CLOCK_OFFSET === undefined ? {} : { LD_PRELOAD, CLOCK_OFFSET };
}
