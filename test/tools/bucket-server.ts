import { createServer, type IncomingMessage } from "node:http";
import { buffer } from "node:stream/consumers";
import { onTestFinished, vi } from "vitest";
import { listenInTest } from "../support/listen.ts";

const KEY = "a-key-of-tests";
const SECRET = "a-secret-of-tests";
/** So few that a list has several pages. */
const PAGE = 2;

/**
 * Starts a server with the part of the S3 API that the program uses, and one bucket, `usage`. It lists in the order of bytes, as S3
 * does. The environment names it until the test ends.
 */
export async function startBucketServer(): Promise<{ url: string; environment: Record<string, string> }> {
  const objects = new Map<string, Buffer>();
  const server = createServer(async (request, response) => {
    const { status, said = "" } = responseTo(request, await buffer(request), objects);
    const body = Buffer.from(said);
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "") ?? [];
    const part =
      from === undefined ? body : body.subarray(Number(from), to === "" ? undefined : Number(to) + 1);
    response.writeHead(from === undefined ? status : 206, {
      "content-type": "application/xml",
      "content-length": part.length,
      ...(from !== undefined && {
        "content-range": `bytes ${from}-${Number(from) + part.length - 1}/${body.length}`,
      }),
    });
    response.end(request.method === "HEAD" ? undefined : part);
  });
  const url = `http://127.0.0.1:${await listenInTest(server)}`;
  const environment = {
    AWS_ENDPOINT_URL_S3: url,
    AWS_REGION: "us-east-1",
    AWS_ACCESS_KEY_ID: KEY,
    AWS_SECRET_ACCESS_KEY: SECRET,
  };
  for (const [name, value] of Object.entries(environment)) vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
  return { url, environment };
}

interface Response {
  readonly status: number;
  readonly said?: string | Buffer;
}

function responseTo(request: IncomingMessage, body: Buffer, objects: Map<string, Buffer>): Response {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://bucket");
  const [, bucket = "", key = ""] = /^\/([^/]*)\/?(.*)$/.exec(decodeURIComponent(pathname)) ?? [];
  if (!request.headers.authorization?.includes(`Credential=${KEY}/`))
    return refusal(403, "InvalidAccessKeyId");
  if (bucket !== "usage") return refusal(404, "NoSuchBucket");
  const upload = searchParams.get("uploadId");
  if (request.method === "POST" && upload === null) {
    objects.set(`${key}?parts`, Buffer.alloc(0));
    return { status: 200, said: "<Result><UploadId>one</UploadId></Result>" };
  }
  if (upload !== null) return uploaded({ method: request.method, key, body, objects });
  if (request.method === "PUT") {
    objects.set(key, body);
    return { status: 200 };
  }
  if (request.method === "DELETE") return { status: objects.delete(key) ? 204 : 404 };
  if (key === "") return list(objects, searchParams);
  const found = objects.get(key);
  return found === undefined ? refusal(404, "NoSuchKey") : { status: 200, said: found };
}

function uploaded({
  method = "",
  key,
  body,
  objects,
}: {
  method: string | undefined;
  key: string;
  body: Buffer;
  objects: Map<string, Buffer>;
}): Response {
  const parts = objects.get(`${key}?parts`);
  if (parts === undefined) return refusal(404, "NoSuchUpload");
  objects.delete(`${key}?parts`);
  if (method === "PUT") objects.set(`${key}?parts`, Buffer.concat([parts, body]));
  if (method === "POST") objects.set(key, parts);
  return { status: 200, said: method === "POST" ? "<Result><ETag>one</ETag></Result>" : "" };
}

function list(objects: ReadonlyMap<string, Buffer>, query: URLSearchParams): Response {
  const after = query.get("continuation-token") ?? "";
  const keys = [...objects.keys()]
    .filter((key) => key.startsWith(query.get("prefix") ?? "") && key > after)
    .sort();
  const page = keys.slice(0, PAGE);
  const contents = page.map(
    (key) => `<Contents><Key>${key}</Key><Size>${objects.get(key)?.length}</Size></Contents>`,
  );
  const next = `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>`;
  const isCut = keys.length > PAGE;
  return {
    status: 200,
    said: `<ListBucketResult>${contents.join("")}<IsTruncated>${isCut}</IsTruncated>${isCut ? next : ""}</ListBucketResult>`,
  };
}

function refusal(status: number, code: string): Response {
  return { status, said: `<Error><Code>${code}</Code><Message>${KEY} ${SECRET}</Message></Error>` };
}
