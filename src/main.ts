// A reader such as `head` may leave early: the command goes on, and its exit code says what it did.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
}
const { main } = await import("./cli/program.ts");
await main();
