import Type, { type Static } from 'typebox';
import { localTime } from '../../lib/local-time.ts';
import type { TaskRow } from '../../tasks/cluster-tasks.ts';
import { readPushProgress, readPushReport } from '../../pushing/progress.ts';
import { readPushSpec } from '../../pushing/spec.ts';
import { TrackStream } from '../../tasks/track-selection.ts';
import { TaskStreamBody } from './task-actions.ts';

/** Body in the description of the API; `readPush` checks it, with texts of its own. */
export const PushCreation = Type.Object({
  id: Type.String(),
  stream: TaskStreamBody,
  protocol: Type.String({ description: 'srt, rtmp, rtsp, whip or mpegts' }),
  url: Type.String(),
  streamKey: Type.Optional(Type.String({ description: 'required for rtmp; the bearer token for whip' })),
  standby: Type.Optional(Type.Boolean({ description: 'whether the slate of a publisher that is away is pushed' })),
});

/** A push in answers; `sentTime` and `totalsentTime` are in milliseconds. */
export const PushTask = Type.Object({
  id: Type.String(),
  state: Type.String({ description: 'ready, connecting, pushing, stopping, stopped or error' }),
  isConfig: Type.Boolean(),
  vhost: Type.String(),
  app: Type.String(),
  stream: TrackStream,
  protocol: Type.String(),
  url: Type.String(),
  streamKey: Type.String(),
  sentBytes: Type.Integer(),
  sentTime: Type.Integer(),
  sequence: Type.Integer(),
  totalsentBytes: Type.Integer(),
  totalsentTime: Type.Integer(),
  createdTime: Type.String(),
  startTime: Type.String(),
  finishTime: Type.String(),
  warnings: Type.Optional(Type.Array(Type.String(), { description: 'tracks that are left out, and why' })),
  reason: Type.Optional(Type.String({ description: 'of the state error' })),
});
type PushTask = Static<typeof PushTask>;

/** Shows a push. @returns undefined for one that a node of another version has created */
export function pushTask(row: TaskRow): PushTask | undefined {
  const spec = readPushSpec(row.definition.spec);
  if (spec === undefined) return undefined;
  const report = readPushReport(row.report);
  const waiting = { ...readPushProgress(row.definition.progress?.value), state: 'ready' };
  const { state, startTime, finishTime, ...counts } = report ?? waiting;
  const { id, vhost, app } = row.name;
  const { stream, protocol, url, streamKey, createdTime } = spec;
  return {
    id,
    state,
    isConfig: row.definition.origin !== undefined,
    vhost,
    app,
    stream,
    protocol,
    url,
    streamKey,
    ...counts,
    createdTime: localTime(createdTime),
    startTime: localTime(startTime),
    finishTime: localTime(finishTime),
    ...(row.state === 'unknown' && { state: 'error', reason: 'the node that pushes the stream does not answer' }),
  };
}
