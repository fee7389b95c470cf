// A reader such as `head` may close the pipe early. The command continues and returns its usual exit code.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
// If stderr fails, for example on a full disk, there is no place left for a message.
process.stderr.on("error", () => {});
const { main } = await import("./program.ts");
await main();
