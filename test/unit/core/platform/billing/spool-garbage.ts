import { Spool } from "../../../../../src/core/platform/billing/export.ts";

const spool = new Spool();
let most = 0;
for (let piece = 0; piece < 2000; piece++) {
  await spool.push(Buffer.alloc(65_536, piece));
  most = Math.max(most, process.memoryUsage().arrayBuffers);
}
await spool.close();
process.stdout.write(JSON.stringify({ bytes: spool.bytes, mostMb: Math.round(most / 1e6) }));
