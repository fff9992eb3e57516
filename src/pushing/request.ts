import { kilnError } from '../errors.ts';
import {
  demandParameters,
  readFlag,
  readTaskId,
  readTaskStream,
  readText,
  type TaskRequest,
} from '../tasks/request.ts';
import { pushProtocol, readDestination } from './destination.ts';
import { PushError } from './error.ts';
import type { PushSpec } from './spec.ts';

interface Place {
  readonly vhost: string;
  readonly app: string;
}

/**
 * Checks a push request, with the error texts of docs/compatibility.md#recordings-pushes-dumps.
 * @throws taskInvalid, pushProtocolUnknown
 */
export function readPush(
  request: TaskRequest,
  { vhost, app }: Place,
): { readonly id: string; readonly spec: PushSpec } {
  demandParameters(request, ['id', 'stream.name', 'url', 'protocol']);
  const id = readTaskId(request);
  const stream = readTaskStream(request);
  const named = readText(request, 'protocol') ?? '';
  const url = readText(request, 'url') ?? '';
  const protocol = pushProtocol(named);
  if (protocol === undefined) throw kilnError('pushProtocolUnknown', named, vhost, app);
  if (protocol === 'rtmp') demandParameters(request, ['streamKey']);
  const streamKey = readText(request, 'streamKey') ?? '';
  const standby = readFlag(request, 'standby');
  try {
    readDestination(protocol, url, streamKey);
  } catch (error) {
    if (!(error instanceof PushError)) throw error;
    throw kilnError('taskInvalid', error.message);
  }
  const common = { stream, protocol, url, streamKey, createdTime: Date.now() };
  return { id, spec: { ...common, ...(standby !== undefined && { standby }) } };
}
