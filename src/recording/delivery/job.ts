import { dirname, join } from 'node:path';
import Type, { type Static } from 'typebox';
import { localTime } from '../../lib/local-time.ts';
import { NamedSubtitles, RECORDED } from '../journal.ts';
import { Progress } from './upload.ts';

const Uploaded = Type.Object({
  bucket: Type.String(),
  key: Type.String(),
  etag: Type.String(),
  /** Whether the storage confirmed the checksum, so that the local file may be deleted. */
  verified: Type.Boolean(),
});

/** Subtitles of a file, and where they were uploaded to. */
const DeliveredSubtitles = Type.Object({
  ...NamedSubtitles.properties,
  key: Type.Optional(Type.String()),
  verified: Type.Optional(Type.Boolean()),
});
export type DeliveredSubtitles = Static<typeof DeliveredSubtitles>;

/** A finished file and the next step of its delivery. */
export const Job = Type.Object({
  step: Type.Union([Type.Literal('announce'), Type.Literal('upload')]),
  /** Time of the first attempt, in milliseconds since the epoch. */
  since: Type.Number(),
  /** Absolute. */
  filePath: Type.String(),
  /** Path below the root of recordings, used for the key of an upload. */
  pathBelow: Type.String(),
  /** WebVTT files beside it. */
  subtitles: Type.Optional(Type.Array(DeliveredSubtitles)),
  ...RECORDED,
  recordBytes: Type.Number(),
  /** Duration in milliseconds. */
  recordTime: Type.Number(),
  lastSequence: Type.Boolean(),
  /** Milliseconds since the epoch. */
  finishTime: Type.Number(),
  /** Progress of the upload. */
  progress: Type.Optional(Progress),
  /** Result of the upload, which is announced instead of the local file. */
  uploaded: Type.Optional(Uploaded),
});
export type Job = Static<typeof Job>;

/**
 * Body of an announcement. It is the same at each try, so receivers can detect repetitions by `id`.
 * @param node node that has the file
 */
export function announcement(id: string, job: Job, node: string) {
  const { metadata, uploaded, subtitles } = job;
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
    ...(subtitles !== undefined && { subtitles: subtitles.map((one) => announcedSubtitles(job, one)) }),
    createdTime: localTime(job.createdTime),
    startTime: localTime(job.startTime),
    finishTime: localTime(job.finishTime),
    ...(uploaded !== undefined && { upload: { bucket: uploaded.bucket, key: uploaded.key, etag: uploaded.etag } }),
  };
}

function announcedSubtitles({ filePath }: Job, { label, language, name, key }: DeliveredSubtitles) {
  return {
    label,
    ...(language !== undefined && { language }),
    file: subtitlesPath(filePath, name),
    ...(key !== undefined && { key }),
  };
}

/** Path of the subtitles of a file. @param filePath that of the file, absolute or below the root */
export function subtitlesPath(filePath: string, name: string): string {
  return join(dirname(filePath), name);
}
