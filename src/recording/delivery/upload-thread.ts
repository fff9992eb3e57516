import { parentPort } from 'node:worker_threads';
import { S3Bucket } from './s3-bucket.ts';
import { upload } from './upload.ts';
import type { UploadAnswer, UploadRequest } from './uploads.ts';

async function answer({ number, task, settings }: UploadRequest): Promise<UploadAnswer> {
  const bucket = new S3Bucket(settings);
  try {
    const result = await upload(task, bucket, (now) => tell({ number, progress: { now } }));
    return { number, done: { result } };
  } catch (error) {
    return { number, failure: error instanceof Error ? error.message : String(error) };
  } finally {
    bucket.close();
  }
}

function tell(what: UploadAnswer): void {
  parentPort?.postMessage(what);
}

parentPort?.on('message', (request: UploadRequest) => void answer(request).then(tell));
