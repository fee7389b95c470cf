// A reader such as `head` may leave early: the command goes on, and its exit code stays true.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});
// Nobody can be notified if stderr fails, for example on a full disk.
process.stderr.on("error", () => {});
const { main } = await import("./program.ts");
await main();
