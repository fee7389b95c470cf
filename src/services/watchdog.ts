import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, openSync } from "node:fs";
import type { Socket } from "node:net";

/**
 * Runs one server so that it ends with this process, however this process ends.
 *
 * Between us and the server stands a small shell: it holds the reading end of a pipe that is never written to, and
 * stops the server when the pipe closes, which the kernel sees to even after SIGKILL. It runs in a session of its own,
 * so that Ctrl-C in our terminal reaches us first. A shell, not a second Node: it costs a megabyte and a millisecond,
 * and `killall node` does not end it.
 */

/** A server under its watchdog. */
export interface Watched {
  /** Resolves with the exit code once the server is gone, for whatever reason. */
  readonly gone: Promise<number>;
  /** Lets this process end without `stop`: the server then ends with it. */
  unref(): void;
  /** Asks the server to stop and waits for it. */
  stop(): Promise<void>;
}

export interface WatchInput {
  readonly program: string;
  readonly args: readonly string[];
  /** How to ask it to stop. Repeated every second: it may come before the server listens for it. */
  readonly signal: "INT" | "TERM";
  /** File for its output, begun anew. */
  readonly log: string;
  /** A folder to remove once the server was stopped. */
  readonly remove?: string | undefined;
  /** The user to run as; ours, where absent. */
  readonly user?: { readonly uid: number; readonly gid: number } | undefined;
}

// After a minute of asking, SIGKILL: both servers keep what was committed. `asked` stays 0 when the server ends by
// itself; its folder then stays for its owner, who may start it again.
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
      // Neither our folder, which the server's user may not be able to enter, nor our environment: PGOPTIONS and the
      // like would reach the server. LC_ALL keeps its log in English, where we look for reasons.
      cwd: "/",
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin", LC_ALL: "C" },
      stdio: ["ignore", log, log, "pipe"],
      detached: true,
      ...input.user,
    },
  );
  closeSync(log);
  const pipe = shell.stdio[3] as Socket;
  pipe.on("error", () => {});
  const gone = once(shell, "exit").then(([code]) => (typeof code === "number" ? code : 1));
  // Reported to whoever awaits it; a shell that cannot be spawned must not end the process from here.
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
