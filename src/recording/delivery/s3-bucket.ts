import { createReadStream, type ReadStream } from 'node:fs';
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
  type ServerSideEncryption,
} from '@aws-sdk/client-s3';
import { BucketError, type Bucket, type FileRange, type NewObject, type Stored } from './upload.ts';
import type { BucketSettings } from './uploads.ts';

/** Milliseconds for a connection, and without anything sent or received on it. */
const CONNECTION_TIMEOUT_MS = 5000;
const SILENCE_MS = 30_000;
/** Metadata of an object: the delivery that made it. */
const ID = 'kiln-delivery';
const MAX_REASON = 300;
const SILENT = { trace() {}, debug() {}, info() {}, warn() {}, error() {} };
/** A HEAD has no body that could say more than the status. */
const NOT_THERE: readonly string[] = ['NotFound', 'NoSuchKey', 'AccessDenied', 'Forbidden', '403', '404'];
/** What storages answer that do not know a header. */
const UNKNOWN_HEADER: readonly string[] = ['NotImplemented', 'InvalidArgument', 'InvalidRequest', '501'];

/** A bucket by Amazon's client, with nothing that storages of others often lack: whole requests, MD5 as the checksum. */
export class S3Bucket implements Bucket {
  readonly place: string;
  readonly #bucket: string;
  readonly #client: S3Client;
  /** Whether it may be asked to make objects only where there is none. */
  #isConditional = true;

  constructor({ endpoint, region, bucket, accessKeyId, secretAccessKey, forcePathStyle }: BucketSettings) {
    this.place = `${endpoint ?? region}/${bucket}`;
    this.#bucket = bucket;
    this.#client = new S3Client({
      region,
      forcePathStyle: forcePathStyle === true,
      ...(endpoint !== undefined && { endpoint }),
      ...(accessKeyId !== undefined &&
        secretAccessKey !== undefined && { credentials: { accessKeyId, secretAccessKey } }),
      // what fails is tried again by the lane, and logged there
      maxAttempts: 1,
      logger: SILENT,
      requestChecksumCalculation: 'WHEN_REQUIRED',
      responseChecksumValidation: 'WHEN_REQUIRED',
      requestHandler: { connectionTimeout: CONNECTION_TIMEOUT_MS, socketTimeout: SILENCE_MS },
    });
  }

  async put({ key, id, contentType }: NewObject, range: FileRange, md5: string): Promise<Stored> {
    const object = { ...this.#object(key), ContentMD5: md5, ContentType: contentType, Metadata: { [ID]: id } };
    const stored = await this.#whereNone(key, (condition) =>
      withBody(range, (body) => this.#client.send(new PutObjectCommand({ ...object, ...condition, ...body }))),
    );
    return storedAs(stored);
  }

  async create({ key, id, contentType }: NewObject): Promise<string> {
    const object = { ...this.#object(key), ContentType: contentType, Metadata: { [ID]: id } };
    const { UploadId } = await asked(this.#client.send(new CreateMultipartUploadCommand(object)));
    if (UploadId === undefined) throw new BucketError('NoUploadId', 'the storage has begun no upload');
    return UploadId;
  }

  async putPart(key: string, uploadId: string, number: number, range: FileRange, md5: string): Promise<Stored> {
    const part = { ...this.#object(key), UploadId: uploadId, PartNumber: number, ContentMD5: md5 };
    const stored = withBody(range, (body) => this.#client.send(new UploadPartCommand({ ...part, ...body })));
    return storedAs(await asked(stored));
  }

  async complete(key: string, uploadId: string, etags: readonly string[]): Promise<string> {
    const Parts = etags.map((ETag, index) => ({ ETag, PartNumber: index + 1 }));
    const upload = { ...this.#object(key), UploadId: uploadId, MultipartUpload: { Parts } };
    const { ETag = '' } = await this.#whereNone(key, (condition) =>
      this.#client.send(new CompleteMultipartUploadCommand({ ...upload, ...condition })),
    );
    return ETag;
  }

  async abort(key: string, uploadId: string): Promise<void> {
    await asked(this.#client.send(new AbortMultipartUploadCommand({ ...this.#object(key), UploadId: uploadId })));
  }

  async head(key: string) {
    try {
      const found = await asked(this.#client.send(new HeadObjectCommand(this.#object(key))));
      return { ...storedAs(found), id: found.Metadata?.[ID] };
    } catch (error) {
      // a user who may only write is refused in either case
      if (error instanceof BucketError && NOT_THERE.includes(error.code)) return undefined;
      throw error;
    }
  }

  /** Ends its connections. */
  close(): void {
    this.#client.destroy();
  }

  #object(key: string) {
    return { Bucket: this.#bucket, Key: key };
  }

  /** RFC 9110, 13.1.2: nothing is replaced. Some storages do not know that: they are asked first what they have. */
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
