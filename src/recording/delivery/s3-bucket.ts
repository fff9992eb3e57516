import { createReadStream, type ReadStream } from 'node:fs';
import { addAbortSignal, type Readable } from 'node:stream';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  GetObjectCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
  type ServerSideEncryption,
} from '@aws-sdk/client-s3';
import type { BucketSettings, ObjectBytes, ObjectRange } from './buckets.ts';
import { BucketError, unquoted, type Bucket, type FileRange, type NewObject, type Stored } from './upload.ts';

/** Milliseconds to connect, and without traffic on a connection. */
const CONNECTION_TIMEOUT_MS = 5000;
const SILENCE_MS = 30_000;
/** Limit of the time that a read may take. */
const READ_MS = 15_000;
/** Metadata key of the delivery that made an object. */
const ID = 'kiln-delivery';
const MAX_REASON = 300;
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };
/** Codes include statuses: the response to a HEAD has no body with more detail. */
const NOT_THERE: readonly string[] = ['NotFound', 'NoSuchKey', 'AccessDenied', 'Forbidden', '403', '404'];
/** Codes of storages that do not support a header. */
const UNKNOWN_HEADER: readonly string[] = ['NotImplemented', 'InvalidArgument', 'InvalidRequest', '501'];

/**
 * Bucket accessed by Amazon's client, without features that other storages often lack: whole requests, MD5 as the
 * checksum.
 */
export class S3Bucket implements Bucket {
  readonly place: string;
  readonly #bucket: string;
  readonly #client: S3Client;
  readonly #signal: AbortSignal | undefined;
  /** Whether the storage supports conditional requests. */
  #isConditional = true;

  /** @param signal ends what is asked for @param attempts of each request */
  constructor(settings: BucketSettings, signal?: AbortSignal, attempts = 1) {
    const { endpoint, region, bucket, accessKeyId, secretAccessKey, forcePathStyle } = settings;
    this.place = `${endpoint ?? region}/${bucket}`;
    this.#bucket = bucket;
    this.#signal = signal;
    this.#client = new S3Client({
      region,
      forcePathStyle: forcePathStyle === true,
      ...(endpoint !== undefined && { endpoint }),
      ...(accessKeyId !== undefined &&
        secretAccessKey !== undefined && { credentials: { accessKeyId, secretAccessKey } }),
      maxAttempts: attempts,
      logger: SILENT,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS, socketTimeout: SILENCE_MS },
    });
  }

  async put({ key, id, contentType }: NewObject, range: FileRange, md5: string): Promise<Stored> {
    const object = { ...this.#object(key), ContentMD5: md5, ContentType: contentType, Metadata: { [ID]: id } };
    const stored = await this.#whereNone(key, (condition) =>
      withBody(range, (body) =>
        this.#client.send(new PutObjectCommand({ ...object, ...condition, ...body }), this.#options),
      ),
    );
    return storedAs(stored);
  }

  async create({ key, id, contentType }: NewObject): Promise<string> {
    const object = { ...this.#object(key), ContentType: contentType, Metadata: { [ID]: id } };
    const { UploadId } = await asked(this.#client.send(new CreateMultipartUploadCommand(object), this.#options));
    if (UploadId === undefined) throw new BucketError('NoUploadId', 'the storage has begun no upload');
    return UploadId;
  }

  async putPart(key: string, uploadId: string, number: number, range: FileRange, md5: string): Promise<Stored> {
    const part = { ...this.#object(key), UploadId: uploadId, PartNumber: number, ContentMD5: md5 };
    const stored = withBody(range, (body) =>
      this.#client.send(new UploadPartCommand({ ...part, ...body }), this.#options),
    );
    return storedAs(await asked(stored));
  }

  async complete(key: string, uploadId: string, etags: readonly string[]): Promise<string> {
    const Parts = etags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
    const upload = { ...this.#object(key), UploadId: uploadId, MultipartUpload: { Parts } };
    const { ETag = '' } = await this.#whereNone(key, (condition) =>
      this.#client.send(new CompleteMultipartUploadCommand({ ...upload, ...condition }), this.#options),
    );
    return ETag;
  }

  async abort(key: string, uploadId: string): Promise<void> {
    await asked(
      this.#client.send(new AbortMultipartUploadCommand({ ...this.#object(key), UploadId: uploadId }), this.#options),
    );
  }

  async head(key: string) {
    try {
      const found = await asked(this.#client.send(new HeadObjectCommand(this.#object(key)), this.#options));
      return { ...storedAs(found), id: found.Metadata?.[ID] };
    } catch (error) {
      // a user with write permission only gets this in either case
      if (error instanceof BucketError && NOT_THERE.includes(error.code)) return undefined;
      throw error;
    }
  }

  /**
   * Reads a part of an object (RFC 9110, sections 13.1.1 and 14).
   * @throws BucketError: `PreconditionFailed` for another object than the one that is meant, `Timeout`; what it ends with when
   * the signal is aborted
   */
  async read({ key, size, etag, start, end }: ObjectRange, signal: AbortSignal): Promise<ObjectBytes> {
    const late = AbortSignal.timeout(READ_MS);
    const ended = AbortSignal.any([signal, late]);
    const range = { Range: `bytes=${start}-${end - 1}`, ...(etag !== undefined && { IfMatch: `"${etag}"` }) };
    try {
      const found = await asked(
        this.#client.send(new GetObjectCommand({ ...this.#object(key), ...range }), { abortSignal: ended }),
      );
      const { ContentRange, ETag = '', Body } = found;
      const body = addAbortSignal(ended, Body as Readable);
      try {
        if (etag !== undefined && unquoted(ETag) !== etag) throw replaced(`its ETag is ${ETag}, not "${etag}"`);
        const expected = `bytes ${start}-${end - 1}/${size}`;
        if (ContentRange !== expected)
          throw replaced(`the storage has sent ${ContentRange ?? 'all of it'}, not ${expected}`);
        return { bytes: await allOf(body, end - start), etag: unquoted(ETag) };
      } finally {
        body.destroy();
      }
    } catch (error) {
      if (late.aborted) throw new BucketError('Timeout', `the storage took more than ${READ_MS / 1000} s`);
      throw error;
    }
  }

  close(): void {
    this.#client.destroy();
  }

  get #options() {
    return this.#signal === undefined ? {} : { abortSignal: this.#signal };
  }

  #object(key: string) {
    return { Bucket: this.#bucket, Key: key };
  }

  /**
   * Prevents replacing an object by If-None-Match (RFC 9110, 13.1.2). Storages without support are asked first
   * whether the object exists.
   */
  async #whereNone<T>(key: string, request: (condition: { IfNoneMatch?: string }) => Promise<T>): Promise<T> {
    if (this.#isConditional) {
      try {
        return await asked(request({ IfNoneMatch: '*' }));
      } catch (error) {
        if (!(error instanceof BucketError) || !UNKNOWN_HEADER.includes(error.code)) throw error;
        this.#isConditional = false;
      }
    }
    if ((await this.head(key)) !== undefined)
      throw new BucketError('PreconditionFailed', `the storage already has an object ${key}`);
    return await asked(request({}));
  }
}

/** @throws BucketError unless there are exactly so many */
async function allOf(body: Readable, length: number): Promise<ArrayBuffer> {
  const bytes = new Uint8Array(length);
  let at = 0;
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      if (at + chunk.length > length) throw new BucketError('TooLong', 'the storage has sent more than was asked for');
      bytes.set(chunk, at);
      at += chunk.length;
    }
  } catch (error) {
    throw error instanceof BucketError ? error : new BucketError('CutOff', (error as Error).message);
  }
  if (at < length) throw new BucketError('CutOff', `the storage has sent ${at} of ${length} bytes`);
  return bytes.buffer;
}

function replaced(message: string): BucketError {
  return new BucketError('PreconditionFailed', message);
}

async function withBody<T>(
  { path, start, end }: FileRange,
  send: (body: { readonly Body: ReadStream | ''; readonly ContentLength: number }) => Promise<T>,
): Promise<T> {
  const size = end - start;
  // a stream of no bytes would be sent in chunks
  if (size === 0) return await send({ Body: '', ContentLength: 0 });
  const body = createReadStream(path, { start, end: end - 1 });
  try {
    return await send({ Body: body, ContentLength: size });
  } finally {
    body.destroy();
  }
}

function storedAs(answer: {
  readonly ETag?: string | undefined;
  readonly ServerSideEncryption?: ServerSideEncryption | undefined;
  readonly SSECustomerAlgorithm?: string | undefined;
}): Stored {
  const { ETag = '', ServerSideEncryption = '', SSECustomerAlgorithm } = answer;
  return { etag: ETag, encrypted: ServerSideEncryption.startsWith('aws:kms') || SSECustomerAlgorithm !== undefined };
}

/** @throws BucketError for any other error */
async function asked<T>(answer: Promise<T>): Promise<T> {
  try {
    return await answer;
  } catch (error) {
    const { name, message, code, $metadata } = error as Error & {
      readonly code?: string;
      readonly $metadata?: { readonly httpStatusCode?: number };
    };
    const status = $metadata?.httpStatusCode;
    const unknown = name === 'Error' || name === 'UnknownError' ? (code ?? String(status ?? name)) : name;
    throw new BucketError(unknown, `${unknown}: ${message.slice(0, MAX_REASON)}`);
  }
}
