import Type, { type Static } from 'typebox';
import Value from 'typebox/value';
import type { Json } from '#cluster';
import { TrackStream } from '../tasks/track-selection.ts';

/** Definition of a recording task in the cluster. */
export const RecordSpec = Type.Object({
  stream: TrackStream,
  /** As requested; defaults to the application's. */
  filePath: Type.Optional(Type.String()),
  infoPath: Type.Optional(Type.String()),
  /** Milliseconds of media in a file. */
  interval: Type.Optional(Type.Integer({ minimum: 1 })),
  /** In the form of `parseSchedule`. */
  schedule: Type.Optional(Type.String()),
  segmentationRule: Type.Union([Type.Literal('discontinuity'), Type.Literal('continuity')]),
  metadata: Type.Optional(Type.String()),
  /** Whether what is shown while the publisher is away is recorded; defaults to the application's. */
  standby: Type.Optional(Type.Boolean()),
  /** Milliseconds since the epoch. */
  createdTime: Type.Number(),
});
export type RecordSpec = Static<typeof RecordSpec>;

/** Counts that continue across runs, and the state of a failed task. */
const RecordProgress = Type.Object({
  /** Number of the next file. */
  sequence: Type.Integer(),
  totalBytes: Type.Number(),
  totalTime: Type.Number(),
  /** Reason why the task failed for good. */
  error: Type.Optional(Type.String()),
  /** State at that time, for lists. */
  failed: Type.Optional(Type.Unknown()),
});
export type RecordProgress = Static<typeof RecordProgress>;

/** State of a running task. Times in milliseconds since the epoch, or of media. */
export const RecordReport = Type.Object({
  state: Type.Union([Type.Literal('ready'), Type.Literal('recording'), Type.Literal('error')]),
  warnings: Type.Array(Type.String()),
  reason: Type.Optional(Type.String()),
  outputFilePath: Type.Optional(Type.String()),
  outputInfoPath: Type.Optional(Type.String()),
  recordBytes: Type.Number(),
  recordTime: Type.Number(),
  totalRecordBytes: Type.Number(),
  totalRecordTime: Type.Number(),
  sequence: Type.Integer(),
  startTime: Type.Optional(Type.Number()),
  finishTime: Type.Optional(Type.Number()),
});
export type RecordReport = Static<typeof RecordReport>;

/** undefined for a spec of another version. */
export function readRecordSpec(spec: Json): RecordSpec | undefined {
  return Value.Check(RecordSpec, spec) ? (spec as RecordSpec) : undefined;
}

export function readRecordProgress(progress: unknown): RecordProgress {
  return Value.Check(RecordProgress, progress) ? progress : { sequence: 0, totalBytes: 0, totalTime: 0 };
}

export function readRecordReport(report: unknown): RecordReport | undefined {
  return Value.Check(RecordReport, report) ? report : undefined;
}
