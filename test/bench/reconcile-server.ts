import { createReadStream, statSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { pipeline } from "node:stream";
import { serveAs, takeTask } from "./harness.ts";
import { type ExportShape, exportOf } from "./reconcile-data.ts";
import { workspaceId } from "./shapes.ts";

/** A platform whose exports lie ready: one in a file, or many small ones in memory. */
export interface ExportServerTask {
  readonly shape: ExportShape;
  /** The export of the only workspace. */
  readonly file?: string | undefined;
}

const { shape, file } = await takeTask<ExportServerTask>();

const ids = Array.from({ length: shape.workspaces }, (_, i) => workspaceId(i));
const small = new Map(
  file === undefined ? ids.map((id, i) => [id, Buffer.from([...exportOf(shape, i)].join(""))]) : [],
);
const listing = Buffer.from(JSON.stringify(ids.map((id, i) => ({ id, display_name: `Workspace ${i}` }))));

serveAs((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  if (pathname === "/api/v1/workspaces") send(response, listing, "application/json");
  else if (!pathname.endsWith("/granular-usage/export")) response.writeHead(404).end();
  else if (file === undefined) send(response, small.get(searchParams.get("workspace_ids") ?? ""), "text/csv");
  else {
    response.writeHead(200, { "content-type": "text/csv", "content-length": statSync(file).size });
    pipeline(createReadStream(file, { highWaterMark: 65_536 }), response, () => {});
  }
});

function send(response: ServerResponse, body: Buffer | undefined, type: string): void {
  if (body === undefined) response.writeHead(404).end();
  else response.writeHead(200, { "content-type": type, "content-length": body.length }).end(body);
}
