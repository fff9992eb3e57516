import { kilnError } from '../errors.ts';
import type { TrackStream } from './track-selection.ts';

const MAX_ID = 255;
const MAX_TRACKS = 64;

/** Parameters of a new task, with the keys of the management API: the body of a call, or the content of a file. */
export type TaskRequest = Readonly<Record<string, unknown>>;

/**
 * Checks that a request has what `required` names: paths such as `stream.name`.
 * @throws taskInvalid
 */
export function demandParameters(request: TaskRequest, required: readonly string[]): void {
  const missing = required.filter((path) => {
    let value: unknown = request;
    for (const key of path.split('.')) value = isRequest(value) ? value[key] : undefined;
    return value === undefined || value === null || value === '';
  });
  if (missing.length > 0) throw kilnError('taskInvalid', `There is no required parameter [ ${missing.join(' ')}]`);
}

/** @throws taskInvalid */
export function readTaskId({ id }: TaskRequest): string {
  if (typeof id !== 'string' || id === '') throw kilnError('taskInvalid', '[id] must be a string');
  if (id.length > MAX_ID || /\p{Cc}|\p{Cs}/u.test(id))
    throw kilnError('taskInvalid', `[id] must have at most ${MAX_ID} characters, and no control characters`);
  return id;
}

/** @throws taskInvalid */
export function readTaskStream({ stream }: TaskRequest): TrackStream {
  const { name, tracks, trackIds = tracks ?? [], variantNames = [] } = stream as TaskRequest;
  if (typeof name !== 'string') throw kilnError('taskInvalid', '[stream.name] must be a string');
  if (!isListOf(trackIds, (id): id is number => Number.isSafeInteger(id)))
    throw kilnError('taskInvalid', '[stream.trackIds] must be an array of integers');
  if (!isListOf(variantNames, (one): one is string => typeof one === 'string'))
    throw kilnError('taskInvalid', '[stream.variantNames] must be an array of strings');
  if (trackIds.length > MAX_TRACKS || variantNames.length > MAX_TRACKS)
    throw kilnError('taskInvalid', `[stream] must name at most ${MAX_TRACKS} tracks`);
  return { name, trackIds: [...trackIds], variantNames: [...variantNames] };
}

/** Text under a key of the request; undefined when it is empty or absent. @throws taskInvalid */
export function readText(request: TaskRequest, key: string): string | undefined {
  const value = request[key];
  if (value === undefined || value === null || value === '') return undefined;
  if (typeof value !== 'string') throw kilnError('taskInvalid', `[${key}] must be a string`);
  return value;
}

/** True or false under a key of the request; undefined when it is absent. @throws taskInvalid */
export function readFlag(request: TaskRequest, key: string): boolean | undefined {
  const value = request[key];
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'boolean') throw kilnError('taskInvalid', `[${key}] must be true or false`);
  return value;
}

function isRequest(value: unknown): value is TaskRequest {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isListOf<T>(value: unknown, is: (item: unknown) => item is T): value is T[] {
  return Array.isArray(value) && value.every(is);
}
