import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  type S3ClientConfig,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { EtlError, UnreachableError, UsageError } from "../../core/base/errors.ts";
import { isCut } from "../../core/base/url.ts";
import { bucketHttp } from "./bucket-http.ts";

const ATTEMPTS = 5;
/** Limit of a request with all its attempts. A limit between two pieces would never end a slow response. */
const WHOLE_WITHIN_MS = 600_000;
/** The limit of an upload grows by a second for this number of bytes. */
const BYTES_A_SECOND = 4096;
/** S3 takes no part below 5 MiB, except the last one, and 10,000 parts at most. */
const PART_BYTES = 8 * 2 ** 20;

interface Bucket {
  readonly address: string;
  readonly bucket: string;
  readonly prefix: string;
}

/** Credentials, region and endpoint are those of the AWS environment (AWS_REGION, AWS_ENDPOINT_URL_S3 and so on). */
export function openBucket(
  { address, bucket, prefix }: Bucket,
  { signal, withinMs = WHOLE_WITHIN_MS }: { readonly signal: AbortSignal; readonly withinMs?: number },
) {
  const { configuration, endpoint } = configurationOf(bucket);
  const client = new S3Client(configuration);
  const keyOf = (name: string) => (prefix === "" ? name : `${prefix}/${name}`);
  const inTime: InTime = async (work, sentBytes = 0) => {
    const limitMs = withinMs + Math.ceil(sentBytes / BYTES_A_SECOND) * 1000;
    const deadline = AbortSignal.timeout(limitMs);
    try {
      return await work({ abortSignal: AbortSignal.any([signal, deadline]) });
    } catch (cause) {
      signal.throwIfAborted();
      if (cause instanceof EtlError) throw cause;
      throw namedError(
        address,
        deadline.aborted ? new Error(`within ${limitMs / 1000} s`) : (cause as Error),
      );
    }
  };
  return {
    address,
    endpoint,
    create: async (name: string) => createObject({ client, inTime, Bucket: bucket, Key: keyOf(name) }),
    async read(name: string) {
      return inTime(async (options) => {
        try {
          const { Body } = await client.send(
            new GetObjectCommand({ Bucket: bucket, Key: keyOf(name) }),
            options,
          );
          return await Body?.transformToByteArray();
        } catch (error) {
          if ((error as Error).name === "NoSuchKey") return undefined;
          throw error;
        }
      });
    },
    async list(folder: string) {
      const found = new Map<string, number>();
      let ContinuationToken: string | undefined;
      do {
        const list = new ListObjectsV2Command({
          Bucket: bucket,
          Prefix: keyOf(folder === "" ? "" : `${folder}/`),
          ContinuationToken,
        });
        const page = await inTime((options) => client.send(list, options));
        for (const { Key = "", Size = 0 } of page.Contents ?? [])
          found.set(Key.slice(keyOf("").length), Size);
        ContinuationToken = page.NextContinuationToken;
      } while (ContinuationToken !== undefined);
      return found;
    },
    async remove(name: string) {
      const remove = new DeleteObjectCommand({ Bucket: bucket, Key: keyOf(name) });
      await inTime((options) => client.send(remove, options));
    },
  };
}

type InTime = <T>(
  work: (options: { abortSignal: AbortSignal }) => Promise<T>,
  sentBytes?: number,
) => Promise<T>;

/** An upload needs its length, so a large file is uploaded in parts. The object exists once all parts are joined. */
function createObject({
  client,
  inTime,
  ...object
}: {
  client: S3Client;
  inTime: InTime;
  Bucket: string;
  Key: string;
}) {
  const chunks: Uint8Array[] = [];
  const Parts: { ETag: string | undefined; PartNumber: number }[] = [];
  let UploadId: string | undefined;
  const takeBody = () => Buffer.concat(chunks.splice(0));
  const uploadPart = async () => {
    if (UploadId === undefined) {
      const begin = new CreateMultipartUploadCommand(object);
      UploadId = (await inTime((options) => client.send(begin, options))).UploadId;
    }
    const [Body, PartNumber] = [takeBody(), Parts.length + 1];
    const upload = new UploadPartCommand({ ...object, UploadId, PartNumber, Body });
    const { ETag } = await inTime((options) => client.send(upload, options), Body.length);
    Parts.push({ ETag, PartNumber });
  };
  return {
    async write(chunk: Uint8Array) {
      chunks.push(chunk);
      if (chunks.reduce((sum, { length }) => sum + length, 0) >= PART_BYTES) await uploadPart();
    },
    async commit() {
      if (UploadId === undefined) {
        const Body = takeBody();
        const put = new PutObjectCommand({ ...object, Body });
        await inTime((options) => client.send(put, options), Body.length);
        return;
      }
      if (chunks.length > 0) await uploadPart();
      const join = new CompleteMultipartUploadCommand({ ...object, UploadId, MultipartUpload: { Parts } });
      await inTime((options) => client.send(join, options));
      UploadId = undefined;
    },
    async abandon() {
      chunks.splice(0);
      if (UploadId === undefined) return;
      const abort = new AbortMultipartUploadCommand({ ...object, UploadId });
      UploadId = undefined;
      // A bucket bills for the parts that it keeps, until a rule of the bucket removes them.
      await inTime((options) => client.send(abort, options)).catch(() => {});
    },
  };
}

/** Servers other than AWS often have no host name for a bucket, and lack newer checksums. */
function configurationOf(bucket: string): { configuration: S3ClientConfig; endpoint: URL | undefined } {
  const { AWS_ENDPOINT_URL_S3: own, AWS_ENDPOINT_URL: all, AWS_REGION, AWS_DEFAULT_REGION } = process.env;
  const given = own || all || "";
  const isElsewhere = given !== "";
  // The client's error would show part of the secret as the host.
  if (isCut(given) || given.includes("@"))
    throw endpointRefused(own ? "AWS_ENDPOINT_URL_S3" : "AWS_ENDPOINT_URL");
  const region = AWS_REGION ?? AWS_DEFAULT_REGION ?? (isElsewhere ? "us-east-1" : undefined);
  const configuration = {
    maxAttempts: ATTEMPTS,
    requestHandler: bucketHttp(),
    expectContinueHeader: false,
    ...(region === undefined ? {} : { region }),
    ...(isElsewhere
      ? ({
          forcePathStyle: true,
          requestChecksumCalculation: "WHEN_REQUIRED",
          responseChecksumValidation: "WHEN_REQUIRED",
        } as const)
      : {}),
  };
  const endpoint = isElsewhere ? given : `https://${bucket}.s3.${region ?? "us-east-1"}.amazonaws.com`;
  return { configuration, endpoint: URL.parse(endpoint) ?? undefined };
}

function namedError(
  address: string,
  cause: Error & { $metadata?: { httpStatusCode?: number }; $fault?: string },
): EtlError {
  const status = cause.$metadata?.httpStatusCode;
  // Errors of the client itself contain no secret, but a response's text may.
  const what = cause.name === "Error" ? cause.message : cause.name;
  const isRefused =
    cause.$fault === "client" || (status !== undefined && status < 500) || isSettingMissing(cause);
  if (!isRefused) {
    return new UnreachableError({
      code: "files_place_away",
      message: `${address} does not respond (${what}). The files of the last manifest are complete.`,
      next: "Check the network, and AWS_ENDPOINT_URL_S3 if it is set. The next run writes the missing files.",
      retryable: true,
      cause,
    });
  }
  return new UsageError({
    code: "files_place_refused",
    message: `${address} cannot be used: ${what}. The files of the last manifest are complete.`,
    next: "Check the bucket in USAGE_EXPORT_DIR, and AWS_REGION. The credentials must be allowed to list, read, write and delete in the bucket.",
    cause,
  });
}

function isSettingMissing({ name, message }: Error): boolean {
  return name === "CredentialsProviderError" || /region is missing/i.test(message);
}

function endpointRefused(variable: string): UsageError {
  return new UsageError({
    code: "files_place_refused",
    message: `${variable} has a login, or a character that must be percent-encoded.`,
    next: "Set it to https://host:port. Credentials belong into AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.",
  });
}
