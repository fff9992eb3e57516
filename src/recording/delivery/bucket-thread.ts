import { parentPort } from 'node:worker_threads';
import type { BucketAnswer, BucketRequest, BucketSettings } from './buckets.ts';
import { S3Bucket } from './s3-bucket.ts';
import { BucketError, upload } from './upload.ts';

/** Buckets whose connections stay open between reads. */
const MAX_OPEN = 16;
/** Tries of a read. The lane retries uploads, and logs why. */
const ATTEMPTS = 3;

interface OpenBucket {
  readonly bucket: S3Bucket;
  reads: number;
}

/** By their settings, the one that was used last at the end. */
const open = new Map<string, OpenBucket>();
const running = new Map<number, AbortController>();

async function work(
  request: Exclude<BucketRequest, { abort: true }>,
  signal: AbortSignal,
): Promise<NonNullable<BucketAnswer['done']>> {
  const { number, settings } = request;
  if ('range' in request) return { result: await reading(settings, (bucket) => bucket.read(request.range, signal)) };
  const bucket = new S3Bucket(settings, signal);
  try {
    return { result: await upload(request.task, bucket, (now) => tell({ number, progress: { now } })) };
  } finally {
    bucket.close();
  }
}

async function reading<T>(settings: BucketSettings, read: (bucket: S3Bucket) => Promise<T>): Promise<T> {
  const key = JSON.stringify(settings);
  const found = open.get(key) ?? { bucket: new S3Bucket(settings, undefined, ATTEMPTS), reads: 0 };
  open.delete(key);
  open.set(key, found);
  found.reads++;
  try {
    return await read(found.bucket);
  } finally {
    found.reads--;
    for (const [other, { bucket, reads }] of open) {
      if (open.size <= MAX_OPEN) break;
      if (reads > 0) continue;
      open.delete(other);
      bucket.close();
    }
  }
}

function failureOf(error: unknown): NonNullable<BucketAnswer['failure']> {
  if (error instanceof BucketError) return { message: error.message, code: error.code };
  return { message: error instanceof Error ? error.message : String(error) };
}

function tell(answer: BucketAnswer): void {
  const { result } = answer.done ?? {};
  parentPort?.postMessage(answer, result !== undefined && 'bytes' in result ? [result.bytes] : []);
}

async function take(request: BucketRequest): Promise<void> {
  const { number } = request;
  if ('abort' in request) return running.get(number)?.abort();
  const abort = new AbortController();
  running.set(number, abort);
  try {
    tell({ number, done: await work(request, abort.signal) });
  } catch (error) {
    tell({ number, failure: failureOf(error) });
  } finally {
    running.delete(number);
  }
}

parentPort?.on('message', (request: BucketRequest) => void take(request));
