import Type, { type Static } from 'typebox';
import { localTime } from '../../lib/local-time.ts';
import { RECORDED } from '../journal.ts';
import { Progress } from './upload.ts';

const Uploaded = Type.Object({
  bucket: Type.String(),
  key: Type.String(),
  etag: Type.String(),
  /** The storage has confirmed the checksum: the local file may go. */
  verified: Type.Boolean(),
});

/** A finished file, and what is still to be done for it. */
export const Job = Type.Object({
  step: Type.Union([Type.Literal('announce'), Type.Literal('upload')]),
  /** When the step could be done for the first time, in milliseconds since the epoch. */
  since: Type.Number(),
  /** Absolute. */
  filePath: Type.String(),
  /** From the root of recordings on: what an upload is called. */
  pathBelow: Type.String(),
  ...RECORDED,
  recordBytes: Type.Number(),
  /** Milliseconds. */
  recordTime: Type.Number(),
  lastSequence: Type.Boolean(),
  /** Milliseconds since the epoch. */
  finishTime: Type.Number(),
  /** How far an upload is. */
  progress: Type.Optional(Progress),
  /** What has become of the upload; what is announced then is that, and not the file alone. */
  uploaded: Type.Optional(Uploaded),
});
export type Job = Static<typeof Job>;

/**
 * The body of an announcement. It is the same at each try, so that receivers can tell repetitions by `id`.
 * @param node that has the file
 */
export function announcement(id: string, job: Job, node: string) {
  const { metadata, uploaded } = job;
  return {
    id,
    event: uploaded === undefined ? 'finished' : 'uploaded',
    node,
    file: job.filePath,
    /** Bytes. */
    size: job.recordBytes,
    /** Milliseconds. */
    duration: job.recordTime,
    sequence: job.sequence,
    lastSequence: job.lastSequence,
    task: {
      id: job.id,
      vhost: job.vhost,
      app: job.app,
      stream: job.stream,
      ...(metadata !== undefined && { metadata }),
      transactionId: job.transactionId,
    },
    createdTime: localTime(job.createdTime),
    startTime: localTime(job.startTime),
    finishTime: localTime(job.finishTime),
    ...(uploaded !== undefined && { upload: { bucket: uploaded.bucket, key: uploaded.key, etag: uploaded.etag } }),
  };
}
