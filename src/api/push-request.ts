import Type, { type Static } from 'typebox';
import { localTime } from '../core/local-time.ts';
import { kilnError } from '../errors.ts';
import type { TaskRow } from '../tasks/cluster-tasks.ts';
import { pushProtocol, readDestination } from '../tasks/push/destination.ts';
import { PushError } from '../tasks/push/error.ts';
import { readPushProgress, readPushReport } from '../tasks/push/progress.ts';
import { readPushSpec, type PushSpec } from '../tasks/push/spec.ts';
import { creationOf, readTaskId, readTaskStream, readText, TaskStream, TaskStreamBody } from './task-actions.ts';

/** The body in the description of the API; `readPushRequest` checks it, in words of its own. */
export const PushCreation = Type.Object({
  id: Type.String(),
  stream: TaskStreamBody,
  protocol: Type.String({ description: 'srt, rtmp or mpegts' }),
  url: Type.String(),
  streamKey: Type.Optional(Type.String({ description: 'required for rtmp' })),
});

/** A push in answers; times of `sentTime` and `totalsentTime` are milliseconds. */
export const PushTask = Type.Object({
  id: Type.String(),
  state: Type.String({ description: 'ready, connecting, pushing, stopping, stopped or error' }),
  isConfig: Type.Boolean(),
  vhost: Type.String(),
  app: Type.String(),
  stream: TaskStream,
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
});
type PushTask = Static<typeof PushTask>;

interface Place {
  readonly vhost: string;
  readonly app: string;
}

/**
 * Checks the body of `:startPush`, with the texts of facts/01-rest-api.md section 8.
 * @throws bodyNotObject, taskInvalid, pushProtocolUnknown
 */
export function readPushRequest(
  body: unknown,
  { vhost, app }: Place,
): { readonly id: string; readonly spec: PushSpec } {
  const given = creationOf(body, ['id', 'stream.name', 'url', 'protocol']);
  const id = readTaskId(given);
  const { name, trackIds, variantNames } = readTaskStream(given);
  const named = readText(given, 'protocol') ?? '';
  const url = readText(given, 'url') ?? '';
  const protocol = pushProtocol(named);
  if (protocol === undefined) throw kilnError('pushProtocolUnknown', named, vhost, app);
  if (protocol === 'rtmp') creationOf(body, ['streamKey']);
  const streamKey = readText(given, 'streamKey') ?? '';
  try {
    readDestination(protocol, url, streamKey);
  } catch (error) {
    if (!(error instanceof PushError)) throw error;
    throw kilnError('taskInvalid', error.message);
  }
  const stream = { name, trackIds: [...trackIds], variantNames: [...variantNames] };
  return { id, spec: { stream, protocol, url, streamKey, createdTime: Date.now() } };
}

/** A push as answers show it. @returns undefined for one that a node of another version has created */
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
    // what its node does while it does not answer nobody knows
    state: row.state === 'unknown' ? 'error' : state,
    isConfig: false,
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
  };
}
